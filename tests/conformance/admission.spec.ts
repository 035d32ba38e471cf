import { getActiveTest } from '@japa/runner'
import { InMemoryAdmissionBackend } from '../../src/flow/memory_admission.ts'
import { RedisAdmissionBackend } from '../../src/flow/redis/redis_admission.ts'
import { runAdmissionBackendContract } from '../../src/testing/conformance.ts'
import { clientOf, ownPrefix, redisUrl, SHAPES } from '../helpers/redis.ts'
import { STANDING_STILL } from '../transport/standing_still.ts'

runAdmissionBackendContract(
  'InMemoryAdmissionBackend',
  (clock) => new InMemoryAdmissionBackend({ clock })
)

const url = await redisUrl()
for (const shape of url === null ? [] : SHAPES) {
  runAdmissionBackendContract(`RedisAdmissionBackend | ${shape}`, (clock) => {
    const prefix = ownPrefix(url!)
    return {
      open: ({ instanceTtlMs, standsStill }) => {
        const timers = standsStill ? STANDING_STILL : undefined
        const options = { clock, prefix, instanceTtlMs, timers }
        const backend = new RedisAdmissionBackend(clientOf(shape, url!), options)
        // Before the keys are removed: a beat would bring one back.
        getActiveTest()?.cleanup(() => backend.close())
        return backend
      },
      abilities: ['shared', 'leases'],
    }
  })
}
