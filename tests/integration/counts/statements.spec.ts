/*
 * What each thing a body can ask for costs in statements, exactly. `gate` is what a Postgres may cost, and
 * MySQL with one statement more for each turn that begins; the present numbers may only fall, and whoever
 * lowers one lowers it here.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import type { World } from '../../helpers/engines.ts'
import type { Dialect } from '../../helpers/databases.ts'
import { type Cost, type Counter, countedStores, registerTimes, useCounting } from './rig.ts'

interface Scene {
  engine: WorkflowEngine
  counter: Counter
  world: World
}

interface Entry {
  what: string
  gate?: number
  postgres: number
  sqlite: number
  mysql: number
  /** Turns that begin beyond the first: one more statement each on MySQL, whose UPDATE answers no row. */
  claims?: number
  /** One timer pass belongs to it; what such a pass costs when it finds nothing does not. */
  polls?: boolean
  play(scene: Scene): Promise<unknown>
}

const MINUTE = 60_000
const JUMP = 1_000

/** Plays to the suspension, lets the time pass and resumes what is due. */
async function pastDeadline({ counter, engine, world }: Scene): Promise<void> {
  await counter.play('w', 'r', 'run.suspended')
  world.time.jump(JUMP)
  await engine.resumeDueTimers()
}

/** What follows costs this much beyond an empty workflow. */
const ENTRIES: Entry[] = [
  {
    what: 'a local step',
    gate: 1,
    postgres: 1,
    sqlite: 1,
    mysql: 1,
    play: ({ engine, counter }) => {
      registerTimes(engine, 'w', 1, (ctx) => ctx.localStep('step', () => 'value'))
      return counter.play('w', 'r')
    },
  },
  {
    what: 'ten local steps',
    gate: 10,
    postgres: 10,
    sqlite: 10,
    mysql: 10,
    play: ({ engine, counter }) => {
      registerTimes(engine, 'w', 10, (ctx) => ctx.localStep('step', () => 'value'))
      return counter.play('w', 'r')
    },
  },
  {
    what: 'values recorded before a local step',
    gate: 2,
    postgres: 2,
    sqlite: 5,
    mysql: 2,
    play: ({ engine, counter }) => {
      engine.register('w', '1', async (ctx) => {
        await ctx.patched('a')
        await ctx.setEvent('key', 'value')
        await ctx.localStep('step', () => 'value')
      })
      return counter.play('w', 'r')
    },
  },
  {
    what: 'values captured in a row before a local step',
    gate: 2,
    postgres: 2,
    sqlite: 5,
    mysql: 2,
    play: ({ engine, counter }) => {
      engine.register('w', '1', async (ctx) => {
        await ctx.now()
        await ctx.sideEffect(() => 1)
        await ctx.sideEffect(() => 2)
        await ctx.localStep('step', () => 'value')
      })
      return counter.play('w', 'r')
    },
  },
  {
    what: 'a transaction without statements of its own',
    postgres: 3,
    sqlite: 4,
    mysql: 4,
    play: ({ engine, counter }) => {
      registerTimes(engine, 'w', 1, (ctx) => ctx.transaction('step', async () => 'value'))
      return counter.play('w', 'r')
    },
  },
  {
    what: 'a dispatched step',
    gate: 7,
    postgres: 6,
    sqlite: 7,
    mysql: 7,
    claims: 1,
    play: ({ engine, counter }) => {
      engine.handle('remote', () => 'value')
      registerTimes(engine, 'w', 1, (ctx) => ctx.step('remote', 1))
      return counter.play('w', 'r')
    },
  },
  {
    what: 'a dispatched step that its turn awaits',
    gate: 7,
    postgres: 5,
    sqlite: 5,
    mysql: 5,
    play: ({ engine, counter }) => {
      engine.handle('remote', () => 'value')
      registerTimes(engine, 'w', 1, (ctx) => ctx.step('remote', 1, { timeoutMs: MINUTE }))
      return counter.play('w', 'r')
    },
  },
  {
    what: 'a sleep',
    gate: 4,
    postgres: 3,
    sqlite: 8,
    mysql: 5,
    claims: 1,
    polls: true,
    play: (scene) => {
      registerTimes(scene.engine, 'w', 1, (ctx) => ctx.sleep(JUMP))
      return pastDeadline(scene)
    },
  },
  {
    what: 'a signal that comes to its wait',
    gate: 6,
    postgres: 5,
    sqlite: 20,
    mysql: 7,
    claims: 1,
    play: async ({ engine, counter }) => {
      registerTimes(engine, 'w', 1, (ctx) => ctx.waitForSignal('token'))
      await counter.play('w', 'r', 'run.suspended')
      await engine.signal('token', 'payload')
    },
  },
  {
    what: 'a signal that is there before its wait',
    gate: 6,
    postgres: 3,
    sqlite: 9,
    mysql: 6,
    play: async ({ engine, counter }) => {
      registerTimes(engine, 'w', 1, (ctx) => ctx.waitForSignal('token'))
      await engine.signal('token', 'payload')
      await counter.play('w', 'r')
    },
  },
  {
    what: 'a wait that times out',
    postgres: 7,
    sqlite: 25,
    mysql: 9,
    claims: 1,
    polls: true,
    play: (scene) => {
      const wait = { timeoutMs: JUMP }
      registerTimes(scene.engine, 'w', 1, (ctx) =>
        ctx.waitForSignal('token', wait).catch(() => 'late')
      )
      return pastDeadline(scene)
    },
  },
  {
    what: 'an empty child that is waited for',
    gate: 8,
    postgres: 7,
    sqlite: 21,
    mysql: 10,
    claims: 2,
    play: ({ engine, counter }) => {
      // One that ends before its parent parks wakes it twice.
      const parked = counter.next('run.suspended', 'r')
      registerTimes(engine, 'child', 1, () => parked)
      registerTimes(engine, 'w', 1, (ctx) => ctx.child('child', null))
      return counter.play('w', 'r')
    },
  },
  {
    what: 'an empty child that is only started',
    gate: 8,
    postgres: 4,
    sqlite: 9,
    mysql: 5,
    claims: 1,
    play: ({ engine, counter }) => {
      registerTimes(engine, 'child', 0, async () => {})
      registerTimes(engine, 'w', 1, (ctx) => ctx.startChild('child', null))
      return counter.play('w', 'r')
    },
  },
  {
    what: 'a failure with ten local undos',
    postgres: 22,
    sqlite: 25,
    mysql: 22,
    play: ({ engine, counter }) => {
      engine.register('w', '1', async (ctx) => {
        for (let i = 0; i < 10; i++) await ctx.localStep('step', () => i, { compensate: () => {} })
        throw new Error('undo it')
      })
      return counter.play('w', 'r', 'run.failed')
    },
  },
]

const EMPTY = { gate: 3, postgres: 3, sqlite: 4, mysql: 4, claims: 1 }

/** What a gate is on a dialect that has one. */
function gateOf(dialect: Dialect, { gate, claims = 0 }: { gate?: number; claims?: number }) {
  if (gate === undefined || dialect === 'sqlite') return Number.POSITIVE_INFINITY
  return dialect === 'mysql' ? gate + claims : gate
}

const told = (cost: Cost): string => `it sent:\n${cost.texts.join('\n')}`

for (const kind of await countedStores()) {
  const dialect = kind.dialect!
  test.group(`Statements | ${kind.name}`, (group) => {
    const rig = useCounting(group, kind)

    const scene = (): Scene => {
      const engine = rig.engine()
      return { engine, counter: rig.counter(engine), world: rig.world.current }
    }

    test('an empty workflow', async ({ assert }) => {
      const { engine, counter } = scene()
      registerTimes(engine, 'w', 0, async () => {})
      const cost = await counter.of(() => counter.play('w', 'r'))
      assert.equal(cost.statements, EMPTY[dialect], told(cost))
      assert.isAtMost(cost.statements, gateOf(dialect, EMPTY))
    }).timeout(MINUTE)

    for (const entry of ENTRIES) {
      test(entry.what, async ({ assert }) => {
        const played = scene()
        const { counter, engine } = played
        const idle = await counter.of(() => engine.resumeDueTimers())
        const cost = await counter.of(() => entry.play(played))
        // The statement that finds what is due is in both.
        const polled = entry.polls ? idle.statements - 1 : 0
        const beyond = cost.statements - EMPTY[dialect] - polled
        assert.equal(beyond, entry[dialect], told(cost))
        assert.isAtMost(beyond, gateOf(dialect, entry))
      }).timeout(MINUTE)
    }

    test('a local step that ends at once leaves no trace of having begun', async ({ assert }) => {
      const { engine, counter } = scene()
      registerTimes(engine, 'w', 10, (ctx) => ctx.localStep('step', () => 'value'))
      const cost = await counter.of(() => counter.play('w', 'r'))
      assert.deepEqual(cost.written, { completed: 10 })
    }).timeout(MINUTE)

    test('a local step that takes its time is seen running', async ({ assert }) => {
      const { engine, counter, world } = scene()
      const begun = Promise.withResolvers<void>()
      const done = Promise.withResolvers<string>()
      registerTimes(engine, 'w', 1, (ctx) =>
        ctx.localStep('step', () => {
          begun.resolve()
          return done.promise
        })
      )
      const cost = await counter.of(async () => {
        const end = counter.play('w', 'r')
        await begun.promise
        await world.time.advance(25)
        done.resolve('value')
        await end
      })
      assert.deepEqual(cost.written, { running: 1, completed: 1 })
      assert.equal(cost.statements - EMPTY[dialect], 2, told(cost))
    }).timeout(MINUTE)
  })
}
