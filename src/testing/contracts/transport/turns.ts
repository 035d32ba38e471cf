/*
 * Turns of remote workflows, their decisions, and the view of their steps.
 */
import assert from 'node:assert/strict'
import type { WorkflowDecision, WorkflowStepEvent, WorkflowTask } from '../../../wire/messages.ts'
import { routingToken } from '../../../wire/names.ts'
import { eventually, quietly, type TransportSession } from '../transport_session.ts'
import { fresh, shared, type TransportCase } from './case.ts'

const TURNS = { members: ['dispatchWorkflowTask', 'onDecision', 'handleWorkflow'] } as const
const EVENTS = { members: ['dispatchStepEvent', 'onStepEvent'] } as const

const turnOf = ({ prefix }: TransportSession, workflow: string, turn = 1): WorkflowTask => ({
  taskId: `${prefix}:${workflow}:wf:${turn}`,
  runId: `${prefix}:${workflow}`,
  workflow,
  workflowVersion: '3',
  input: { ü: [1, null] },
  history: [
    { seq: 0, kind: 'call', name: 'charge', output: 7 },
    { seq: 1, kind: 'signal', error: { message: 'no', code: 'declined' } },
  ],
  pendingSignals: [{ seq: 2, signal: 'paid', payload: { n: 1 } }],
  group: routingToken(workflow),
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  attempt: 1,
})

const decided = ({ taskId, runId }: WorkflowTask): WorkflowDecision => ({
  taskId,
  runId,
  status: 'continue',
  commands: [
    { kind: 'call', seq: 3, name: 'ship', group: 'ship', input: { é: true } },
    { kind: 'sleep', seq: 4, ms: 5 },
  ],
})

/** What an engine hears of decisions; refuses the first deliveries. */
function decisionsOf(session: TransportSession, refusals = 0): WorkflowDecision[] {
  const heard: WorkflowDecision[] = []
  session.transport.onDecision!((decision) => {
    heard.push(decision)
    return heard.length > refusals ? Promise.resolve() : Promise.reject(new Error('refused'))
  })
  return heard
}

const eventOf = ({ prefix }: TransportSession, seq: number): WorkflowStepEvent => ({
  runId: `${prefix}:watched`,
  seq,
  name: 'charge',
  phase: 'completed',
  startedAt: 1_767_225_600_000,
  finishedAt: 1_767_225_600_005,
  output: { ü: seq },
})

export const TURN_CASES: TransportCase[] = [
  fresh(
    'a turn reaches its workflow as it was sent, and its decision comes back',
    async (bench) => {
      const session = await bench.session()
      const decisions = decisionsOf(session)
      const seen: WorkflowTask[] = []
      session.transport.handleWorkflow!('order', async (task) => {
        seen.push(task)
        return decided(task)
      })
      const task = turnOf(session, 'order')
      await session.transport.dispatchWorkflowTask!(task)
      await eventually('the decision', () => decisions.length > 0)
      assert.deepEqual({ ...seen[0] }, task)
      assert.deepEqual({ ...decisions[0] }, decided(task))
    },
    TURNS
  ),
  fresh(
    'a turn and a step on one token are told apart by their shape',
    async (bench) => {
      const session = await bench.session()
      const decisions = decisionsOf(session)
      session.serve('both', (input) => input)
      session.transport.handleWorkflow!('both', async (task) => decided(task))
      const task = turnOf(session, 'both')
      await session.transport.dispatchWorkflowTask!(task)
      assert.equal(await session.outputOf('both', 5), 5)
      await eventually('the decision', () => decisions.length > 0)
      assert.equal(decisions[0].taskId, task.taskId)
    },
    TURNS
  ),
  fresh(
    'a workflow that nobody serves on its token fails as no_workflow',
    async (bench) => {
      const session = await bench.session()
      const decisions = decisionsOf(session)
      session.serve('only-steps', () => null)
      const { taskId, ...task } = turnOf(session, 'only-steps')
      await session.transport.dispatchWorkflowTask!({ taskId, ...task })
      await eventually('the decision', () => decisions.length > 0)
      const [{ error, ...decision }] = decisions
      assert.deepEqual(
        { ...decision, code: error?.code },
        { taskId, runId: task.runId, status: 'failed', commands: [], code: 'no_workflow' }
      )
    },
    TURNS
  ),
  fresh(
    'a turn beats for its run, and for no step',
    async (bench) => {
      const session = await bench.session()
      const decisions = decisionsOf(session)
      const task = turnOf(session, 'alive')
      const beats = () => session.beats.filter(({ runId }) => runId === task.runId)
      session.transport.handleWorkflow!('alive', async () => {
        await eventually('the beat', () => beats().length > 0)
        return decided(task)
      })
      await session.transport.dispatchWorkflowTask!(task)
      await eventually('the decision', () => decisions.length > 0)
      assert.deepEqual(
        beats().map(({ seq, stepId }) => ({ seq, stepId })),
        beats().map(() => ({ seq: 0, stepId: undefined }))
      )
    },
    TURNS
  ),
  fresh(
    'a decision that its handler refused comes again, and is reported',
    async (bench) => {
      const session = await bench.session()
      const decisions = decisionsOf(session, 2)
      session.transport.handleWorkflow!('again', async (task) => decided(task))
      const task = turnOf(session, 'again')
      await session.transport.dispatchWorkflowTask!(task)
      await eventually('the third delivery', () => decisions.length === 3)
      assert.deepEqual(
        decisions.map((decision) => ({ ...decision })),
        decisions.map(() => decided(task))
      )
      session.assertReported('refused')
    },
    TURNS
  ),
  fresh(
    'a turn whose handler throws comes again, and is reported',
    async (bench) => {
      const session = await bench.session()
      const decisions = decisionsOf(session)
      let turns = 0
      session.transport.handleWorkflow!('flaky', async (task) => {
        if (++turns === 1) throw new Error('planned')
        return decided(task)
      })
      const task = turnOf(session, 'flaky')
      await session.transport.dispatchWorkflowTask!(task)
      await eventually('the decision', () => decisions.length > 0)
      assert.deepEqual({ ...decisions[0] }, decided(task))
      assert.equal(turns, 2)
      session.assertReported('planned')
    },
    TURNS
  ),
  fresh(
    'a second registration for decisions changes nothing',
    async (bench) => {
      const session = await bench.session()
      const [first, second] = [decisionsOf(session), decisionsOf(session)]
      session.transport.handleWorkflow!('once', async (task) => decided(task))
      for (const turn of [1, 2]) {
        await session.transport.dispatchWorkflowTask!(turnOf(session, 'once', turn))
      }
      await eventually('both decisions', () => first.length + second.length >= 2)
      await quietly()
      assert.deepEqual([first.length, second.length], [2, 0])
    },
    TURNS
  ),
  shared(
    'a turn whose worker stands still is decided by another one',
    async (bench) => {
      const engine = await bench.session()
      const decisions = decisionsOf(engine)
      const still = await bench.session({ standsStill: true, leaseMs: 600 })
      let taken = false
      still.transport.handleWorkflow!('held', () => {
        taken = true
        return new Promise(() => {})
      })
      const task = turnOf(engine, 'held')
      await engine.transport.dispatchWorkflowTask!(task)
      await eventually('the pickup', () => taken)
      const heir = await bench.session({ leaseMs: 600 })
      heir.transport.handleWorkflow!('held', async (turn) => decided(turn))
      await eventually('the decision', () => decisions.length > 0)
      assert.equal(decisions[0].taskId, task.taskId)
    },
    { ...TURNS, abilities: ['leases'] }
  ),
  shared(
    'a turn that silenced too many workers is dropped, and reported',
    async (bench) => {
      const settings = { leaseMs: 600, maxStalledCount: 0 }
      const engine = await bench.session()
      const decisions = decisionsOf(engine)
      const still = await bench.session({ ...settings, standsStill: true })
      let taken = 0
      still.transport.handleWorkflow!('held', () => {
        taken++
        return new Promise(() => {})
      })
      await engine.transport.dispatchWorkflowTask!(turnOf(engine, 'held'))
      await eventually('the pickup', () => taken > 0)
      const heir = await bench.session(settings)
      const runs: string[] = []
      heir.transport.handleWorkflow!('held', async (turn) => {
        runs.push(turn.taskId)
        return decided(turn)
      })
      await eventually('the report', () => heir.errors.length > 0)
      const next = turnOf(engine, 'held', 2)
      await engine.transport.dispatchWorkflowTask!(next)
      await eventually('the next decision', () => decisions.length > 0)
      assert.deepEqual([runs, decisions[0].taskId], [[next.taskId], next.taskId])
    },
    { ...TURNS, abilities: ['leases'] }
  ),
  fresh(
    'a step event arrives as it was sent, and again when it was refused',
    async (bench) => {
      const session = await bench.session()
      const heard: WorkflowStepEvent[] = []
      session.transport.onStepEvent!((event) => {
        heard.push(event)
        return heard.length > 1 ? Promise.resolve() : Promise.reject(new Error('refused'))
      })
      const event = eventOf(session, 1)
      await session.transport.dispatchStepEvent!(event)
      await eventually('the second delivery', () => heard.length === 2)
      assert.deepEqual(
        heard.map((each) => ({ ...each })),
        [event, event]
      )
      session.assertReported('refused')
    },
    EVENTS
  ),
  shared(
    'a step event reaches one engine, and only one',
    async (bench) => {
      const engines = [await bench.session(), await bench.session()]
      const heard: number[] = []
      for (const { transport } of engines) {
        transport.onStepEvent!(async ({ seq }) => void heard.push(seq))
      }
      const seqs = [0, 1, 2, 3, 4, 5]
      for (const seq of seqs)
        await engines[0].transport.dispatchStepEvent!(eventOf(engines[0], seq))
      await eventually('every event', () => heard.length >= seqs.length)
      await quietly()
      assert.deepEqual(heard.sort(), seqs)
    },
    EVENTS
  ),
]
