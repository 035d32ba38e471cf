/*
 * An admission backend that does not answer: it denies, it is told of once, and whatever it says later
 * takes no slot away from anybody.
 */
import { test } from '@japa/runner'
import { InMemoryAdmissionBackend } from '../../src/flow/memory_admission.ts'
import type { Admission, AdmissionRequest } from '../../src/flow/port.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const ANSWER_MS = 5_000
const RETRY_MS = 1_000
const LEASE_MS = 30_000

/** Answers of a member wait here while it is `silent`. */
class SlowAdmission extends InMemoryAdmissionBackend {
  silent: 'tryAdmit' | 'release' | 'nothing' = 'nothing'
  readonly late: (() => void)[] = []
  readonly released: string[] = []

  override async tryAdmit(queue: string, request: AdmissionRequest): Promise<Admission> {
    const isSilent = this.silent === 'tryAdmit'
    const answer = await super.tryAdmit(queue, request)
    return isSilent ? this.#later(answer) : answer
  }

  override async release(queue: string, waiterId: string): Promise<void> {
    if (this.silent === 'release') return this.#later(undefined)
    this.released.push(waiterId)
    return super.release(queue, waiterId)
  }

  /** Says everything that is due. */
  speak(): void {
    for (const say of this.late.splice(0)) say()
  }

  #later<T>(answer: T): Promise<T> {
    return new Promise((resolve) => this.late.push(() => resolve(answer)))
  }
}

const [memory] = await storesUnderTest()

test.group('Step queues | a backend that does not answer', (group) => {
  const world = useWorld(group, memory)

  function setup() {
    const admission = new SlowAdmission({ clock: world.time.clock })
    const engine = world.engine({ transport: 'held', admission, leaseMs: LEASE_MS })
    engine.registerQueue({ name: 'q', concurrency: 1 })
    engine.register('w', '1', (ctx) => ctx.step('call', ctx.runId, { queue: 'q' }))
    const start = async (id: string) => {
      await engine.start('w', null, id)
      await world.quiet()
    }
    return { admission, engine, start }
  }
  const out = () => world.held.sent.map(({ input }) => input)

  test('a request without an answer is a denial after 5 s, and is told of once', async ({
    assert,
  }) => {
    const { admission, engine, start } = setup()
    admission.silent = 'tryAdmit'
    await start('a')
    await world.time.advance(ANSWER_MS - 1)
    assert.equal(await world.status('a'), 'running')
    await world.time.advance(1)
    await world.parked('a')
    const { wakeAt } = await world.run('a')
    assert.equal(wakeAt, world.time.now + RETRY_MS)
    for (let again = 0; again < 3; again++) {
      await world.time.advance(RETRY_MS)
      const pass = engine.resumeDueTimers()
      await world.quiet()
      await world.time.advance(ANSWER_MS)
      await pass
    }
    assert.lengthOf(world.reports, 1)
    assert.include(String(world.reports), 'did not answer within 5000 ms')
    admission.silent = 'nothing'
    await world.time.advance(RETRY_MS)
    await engine.resumeDueTimers()
    await world.quiet()
    assert.deepEqual(out(), ['a'])
  })

  test('a slot that is granted too late is given back', async ({ assert }) => {
    const { admission, start } = setup()
    admission.silent = 'tryAdmit'
    await start('a')
    await world.time.advance(ANSWER_MS)
    await world.parked('a')
    admission.silent = 'nothing'
    await start('b')
    await world.parked('b')
    assert.isEmpty(out())
    admission.speak()
    await world.quiet()
    assert.deepEqual(admission.released, ['a:0'])
    assert.deepEqual(out(), ['b'])
  })

  test('not from a step that asked again and holds it', async ({ assert }) => {
    const { admission, engine, start } = setup()
    admission.silent = 'tryAdmit'
    await start('a')
    await world.time.advance(ANSWER_MS)
    await world.parked('a')
    admission.silent = 'nothing'
    await world.time.advance(RETRY_MS)
    await engine.resumeDueTimers()
    await world.quiet()
    assert.deepEqual(out(), ['a'])
    admission.speak()
    await world.quiet()
    assert.isEmpty(admission.released)
    await start('b')
    assert.deepEqual(out(), ['a'])
  })

  test('one that cannot be given back is still the slot of its step', async ({ assert }) => {
    const { admission, engine, start } = setup()
    admission.silent = 'tryAdmit'
    await start('a')
    await world.time.advance(ANSWER_MS)
    await world.parked('a')
    admission.silent = 'release'
    for (const say of admission.late.splice(0)) say()
    await world.quiet()
    await world.time.advance(ANSWER_MS)
    admission.silent = 'nothing'
    await engine.resumeDueTimers()
    await world.quiet()
    assert.deepEqual(out(), ['a'])
  })

  test('a release without an answer holds up no pass, and is sent again', async ({ assert }) => {
    const { admission, engine, start } = setup()
    await start('a')
    admission.silent = 'release'
    await world.held.complete('a:0', 'ok')
    await world.ended('a')
    await start('b')
    await world.parked('b')
    await world.time.advance(ANSWER_MS)
    assert.deepEqual(out(), ['a'])
    const pass = engine.resumeDueTimers()
    await world.quiet()
    await world.time.advance(ANSWER_MS)
    await pass
    admission.silent = 'nothing'
    await engine.resumeDueTimers()
    await world.quiet()
    assert.deepEqual(out(), ['a', 'b'])
    assert.lengthOf(world.reports, 1)
  })
})
