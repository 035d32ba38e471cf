/*
 * Sending a step again that is taken for lost, while its answer arrives after all.
 */
import { test } from '@japa/runner'
import type { Transport } from '../../src/transport/ports.ts'
import type { RemoteTask, StepResult } from '../../src/wire/messages.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000

/** Loses its tasks with the process, and runs none of them: the test answers. */
class Forgetful implements Transport {
  readonly volatile = true
  readonly sent: RemoteTask[] = []
  answer!: (result: StepResult) => Promise<void>

  async dispatch(task: RemoteTask): Promise<void> {
    this.sent.push(task)
  }

  onResult(handler: (result: StepResult) => Promise<void>): void {
    this.answer = handler
  }

  onHeartbeat(): void {}

  beatEvery(): void {}

  isRunning(): boolean {
    return false
  }
}

for (const kind of await storesUnderTest({ fallbacks: false })) {
  test.group(`Sending a step again | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a step that is answered while it is about to be sent again is not sent', async ({
      assert,
    }) => {
      const transport = new Forgetful()
      const engine = world.engine({ transport, leaseMs: LEASE_MS })
      engine.register('w', '1', async (ctx) => ctx.step('remote', 1))
      await engine.start('w', null, 'r')
      await world.parked('r')
      const [{ runId, seq, stepId }] = transport.sent
      world.time.jump(2 * LEASE_MS)
      world.gate(engine).once('commitTurn', async (proceed) => {
        await transport.answer({ runId, seq, stepId, status: 'completed', output: 'late' })
        return proceed()
      })
      await engine.resumeDueTimers()
      assert.equal(await world.output('r'), 'late')
      assert.lengthOf(transport.sent, 1)
    })
  })
}
