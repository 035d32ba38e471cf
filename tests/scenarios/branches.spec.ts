/*
 * Concurrent branches: what a body saw first it sees first again, in whatever process it is replayed.
 * Every scenario runs cold, with kept histories, and with live continuations.
 */
import { test } from '@japa/runner'
import { isWorkflowControlFlowSignal } from '../../src/foundation/control_flow.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

type Body = (ctx: WorkflowCtx) => Promise<unknown>

/** How the process of a run comes and goes between its turns. */
const MODES = {
  'crashing before every piece of news': { crashes: true, continuations: false },
  'replaying in one process': { crashes: false, continuations: false },
  'continuing live bodies': { crashes: false, continuations: {} },
} as const

type Mode = keyof typeof MODES

/** One engine after the other over one run; `next()` is the one that is alive. */
function lineage(world: World, mode: Mode, body: Body) {
  const { crashes, continuations } = MODES[mode]
  const born = () => {
    const engine = world.engine({ transport: 'held', continuations })
    engine.register('w', '1', body)
    return engine
  }
  let alive: WorkflowEngine = born()
  return {
    get engine() {
      return alive
    },
    /** The next one does it. */
    async via<T>(act: (engine: WorkflowEngine) => Promise<T>): Promise<T> {
      return act(await this.next())
    },
    async next(): Promise<WorkflowEngine> {
      await world.quiet()
      if (!crashes) return alive
      await world.crash(alive)
      alive = born()
      return alive
    },
  }
}

for (const kind of await storesUnderTest()) {
  for (const mode of Object.keys(MODES) as Mode[]) {
    test.group(`Branches | ${kind.name} | ${mode}`, (group) => {
      const world = useWorld(group, kind)

      test('branches of several steps keep their positions and results', async ({ assert }) => {
        const positions = new Set<string>()
        const body: Body = async (ctx) => {
          const branch = async (name: string, n: number) => {
            const a = await ctx.step<string>(`${name}1`, n)
            const b = await ctx.localStep(`${name}2`, () => `${a}+local`)
            const c = await ctx.step<string>(`${name}3`, b)
            await ctx.setEvent(name, c)
            return c
          }
          return Promise.all([branch('left', 1), branch('right', 2)])
        }
        const line = lineage(world, mode, body)
        await line.engine.start('w', null, 'r')
        // The right branch is faster, then the left one catches up.
        for (const step of ['right1', 'left1', 'left3', 'right3']) {
          const task = await world.held.task(step)
          await line.next()
          await world.held.complete(task, `${step}!`)
          await world.quiet()
          for (const [seq, name] of await world.timeline('r')) positions.add(`${seq} ${name}`)
        }
        await line.next()
        const run = await world.ended('r')
        assert.deepInclude(run, { status: 'completed', output: ['left3!', 'right3!'] })
        const seqs = [...positions].map((position) => position.split(' ')[0])
        assert.equal(new Set(seqs).size, seqs.length, [...positions].join(', '))
        assert.equal(await line.engine.getEvent('r', 'left'), 'left3!')
        for (const task of world.held.sent) assert.equal(world.held.times(task.stepId), 1)
      }).tags(['@scenario-1'])

      test('a race is won by the same branch every time', async ({ assert }) => {
        const winners: string[] = []
        const body: Body = async (ctx) => {
          const winner = await Promise.race([
            ctx.waitForSignal('go').then(() => 'signal'),
            ctx.sleep(1000).then(() => 'sleep'),
          ])
          winners.push(winner)
          await ctx.waitForSignal('on')
          await ctx.waitForSignal('and on')
          return winner
        }
        for (const [id, first] of [
          ['r1', 'signal'],
          ['r2', 'sleep'],
        ]) {
          winners.length = 0
          const line = lineage(world, mode, body)
          await line.engine.start('w', null, id)
          await world.parked(id)
          if (first === 'signal') {
            await line.via((engine) => engine.signal('go'))
            await world.quiet()
            world.time.jump(1001)
          } else {
            world.time.jump(1001)
            await line.via((engine) => engine.resumeDueTimers())
            await world.quiet()
            // Both are settled from here on; the loser came second.
            await line.engine.signal('go')
          }
          await line.via((engine) => engine.resumeDueTimers())
          await world.quiet()
          await line.via((engine) => engine.signal('on'))
          await world.quiet()
          await line.via((engine) => engine.signal('and on'))
          assert.equal(await world.output(id), first)
          assert.deepEqual([...new Set(winners)], [first])
          await world.crash(line.engine)
        }
      }).tags(['@scenario-2'])

      test('a race of two results that both came before the replay is won by the first', async ({
        assert,
      }) => {
        const seen: string[] = []
        const body: Body = async (ctx) => {
          const winner = await Promise.race([ctx.step<string>('a', 1), ctx.step<string>('b', 2)])
          seen.push(winner)
          await ctx.sleep(1000)
          return winner
        }
        const line = lineage(world, mode, body)
        await line.engine.start('w', null, 'r')
        const [a, b] = [await world.held.task('a'), await world.held.task('b')]
        await line.next()
        await world.held.complete(b, 'b')
        await world.quiet()
        await world.held.complete(a, 'a')
        await world.quiet()
        world.time.jump(1001)
        await line.via((engine) => engine.resumeDueTimers())
        assert.equal(await world.output('r'), 'b')
        assert.deepEqual([...new Set(seen)], ['b'])
      }).tags(['@scenario-2'])

      test('any and allSettled see failures and results in the order they saw them first', async ({
        assert,
      }) => {
        const orders = new Set<string>()
        const body: Body = async (ctx) => {
          const order: string[] = []
          const note = (name: string) => (how: unknown) => {
            if (isWorkflowControlFlowSignal(how)) throw how
            order.push(`${name}:${how instanceof Error ? how.message : String(how)}`)
            return how
          }
          const calls = ['a', 'b', 'c'].map((name) =>
            ctx.step(name, 0).then(note(name), note(name))
          )
          const all = await Promise.allSettled(calls)
          if (order.length === 3) orders.add(order.join(' '))
          await ctx.waitForSignal('on')
          return all.length
        }
        const line = lineage(world, mode, body)
        await line.engine.start('w', null, 'r')
        const tasks = await Promise.all(['a', 'b', 'c'].map((name) => world.held.task(name)))
        await line.next()
        await world.held.fail(tasks[2], 'no')
        await line.next()
        await world.held.complete(tasks[0], 1)
        await line.next()
        await world.held.fail(tasks[1], 'never')
        await world.quiet()
        await line.via((engine) => engine.signal('on'))
        assert.equal(await world.output('r'), 3)
        assert.deepEqual([...orders], ['c:no a:1 b:never'])
      })

      test('a park waits for its nearest deadline, with the work of its siblings recorded', async ({
        assert,
      }) => {
        const body: Body = async (ctx) => {
          await Promise.all([
            ctx.sleep('5m'),
            ctx.waitForSignal('go', { timeoutMs: 60_000 }).catch(() => 'late'),
            ctx.localStep('slow', async () => {
              await new Promise(setImmediate)
              return 'done'
            }),
            ctx.step('remote', 1).catch(() => 'failed'),
          ])
          return 'end'
        }
        const line = lineage(world, mode, body)
        await line.engine.start('w', null, 'r')
        const parked = await world.parked('r')
        const begun = world.time.now
        assert.equal(parked.wakeAt, begun + 60_000)
        assert.sameDeepMembers(await world.timeline('r'), [
          [0, 'sleep', 'completed'],
          [1, 'timeout:go', 'completed'],
          [3, 'slow', 'completed'],
          [4, 'remote', 'pending'],
        ])
        world.time.jump(60_001)
        await line.via((engine) => engine.resumeDueTimers())
        const again = await world.parked('r')
        assert.equal(again.wakeAt, begun + 300_000)
        world.time.jump(240_000)
        const task = await world.held.task('remote')
        await line.next()
        await world.held.complete(task, 1)
        assert.equal(await world.output('r'), 'end')
      }).tags(['@race-47'])

      test('a deadline is the first one recorded, whatever the code or the clock says later', async ({
        assert,
      }) => {
        let duration = 60_000
        const body: Body = async (ctx) => {
          await ctx.sleep(duration)
          const slept = await ctx.now()
          await ctx.sleepUntil(slept + duration)
          return slept
        }
        const line = lineage(world, mode, body)
        await line.engine.start('w', null, 'r')
        const begun = world.time.now
        await world.parked('r')
        duration = 5
        world.time.jump(30_000)
        assert.deepEqual(await line.via((engine) => engine.resumeDueTimers()), [])
        await line.engine.resume('r')
        const parked = await world.parked('r')
        assert.equal(parked.wakeAt, begun + 60_000)
        duration = 1_000_000
        world.time.jump(30_000)
        await line.via((engine) => engine.resumeDueTimers())
        const second = await world.parked('r')
        assert.equal(second.wakeAt, begun + 60_000 + 1_000_000)
        duration = 1
        world.time.jump(1_000_000)
        await line.via((engine) => engine.resumeDueTimers())
        assert.equal(await world.output('r'), begun + 60_000)
      }).tags(['@scenario-8', '@race-49'])
    })
  }
}
