/*
 * Transports that break what is promised of turns, of pods without a store, and of what is known of a fleet.
 */
import { altered } from '../../helpers/altered.ts'
import { type Defect, doubles, type Ear, hears, without } from './defect.ts'

export const TURNS: Defect[] = [
  {
    what: 'forgets signals that wait for a turn',
    noticedBy: ['a turn reaches its workflow as it was sent, and its decision comes back'],
    transport: (it) => ({
      dispatchWorkflowTask: (task) => it.dispatchWorkflowTask(without(task, 'pendingSignals')),
    }),
  },
  {
    what: 'has room for a workflow or a step under a name',
    noticedBy: ['a turn and a step on one token are told apart by their shape'],
    transport: (it, { served }) => ({
      handleWorkflow: (name, turn) => {
        served.add(name)
        it.handleWorkflow(name, turn)
      },
      dispatch: async (task) => {
        if (served.has(task.name)) throw new Error('that is a workflow')
        await it.dispatch(task)
      },
    }),
  },
  {
    what: 'gives no code for a workflow that is unknown',
    noticedBy: ['a workflow that nobody serves on its token fails as no_workflow'],
    transport: (it) => ({
      onDecision: hears(
        (ear) => it.onDecision(ear),
        (decision) =>
          decision.error ? { ...decision, error: without(decision.error, 'code') } : decision
      ),
    }),
  },
  {
    what: 'has a step in every beat',
    noticedBy: ['a turn beats for its run, and for no step'],
    transport: (it) => ({
      onHeartbeat: hears(
        (ear) => it.onHeartbeat(ear),
        (beat) => ({ ...beat, stepId: beat.stepId ?? `${beat.runId}:${beat.seq}` })
      ),
    }),
  },
  {
    what: 'fails a turn whose handler throws',
    noticedBy: ['a turn whose handler throws comes again, and is reported'],
    transport: (it) => ({
      handleWorkflow: (name, turn) =>
        it.handleWorkflow(name, (task) =>
          turn(task).catch(({ message }: Error) => {
            const { taskId, runId } = task
            return { taskId, runId, status: 'failed', commands: [], error: { message } }
          })
        ),
    }),
  },
  {
    what: 'tells everybody of a decision',
    noticedBy: ['a second registration for decisions changes nothing'],
    transport: (it) => {
      const ears: Parameters<Ear<Parameters<Parameters<typeof it.onDecision>[0]>[0]>>[0][] = []
      return {
        onDecision: (ear) => {
          ears.push(ear)
          it.onDecision(async (decision) => {
            for (const each of ears) await each(decision)
          })
        },
      }
    },
  },
  {
    what: 'strips step events',
    noticedBy: ['a step event arrives as it was sent, and again when it was refused'],
    transport: (it) => ({
      dispatchStepEvent: (event) => it.dispatchStepEvent(without(event, 'finishedAt')),
    }),
  },
  doubles('stepEvent', 'a step event reaches one engine, and only one'),
]

export const TENANTS: Defect[] = [
  doubles('startRun', 'a start reaches one control plane, as it was sent'),
  {
    what: 'replies without codes',
    noticedBy: ['the reply to a request reaches the pod that asked, with its result or its error'],
    transport: (it) => ({
      publishRunReply: ({ requestId, result }) =>
        it.publishRunReply({
          requestId,
          result: result.ok ? result : { ok: false, error: { message: result.error.message } },
        }),
    }),
  },
  {
    what: 'tells every tenant',
    noticedBy: ['an event reaches every subscriber of its tenant, and nobody else'],
    transport: (it) => ({
      onTenantEvent: (_tenant, listener) => {
        const stops = ['acme', 'globex'].map((tenant) => it.onTenantEvent(tenant, listener))
        return () => {
          for (const stop of stops) stop()
        }
      },
    }),
  },
  {
    what: 'keeps subscribers that left',
    noticedBy: ['a subscriber that leaves takes no other with it'],
    transport: (it) => ({
      onTenantEvent: (tenant, listener) => {
        it.onTenantEvent(tenant, listener)
        return () => {}
      },
    }),
  },
]

export const FLEET: Defect[] = [
  {
    what: 'says nothing of the load of workers',
    noticedBy: ['the health of a group counts what waits and lists who is alive, with its load'],
    transport: (it) => ({
      groupHealth: async (group) => {
        const health = await it.groupHealth!(group)
        return {
          ...health,
          liveWorkers: health.liveWorkers.map((worker) => without(worker, 'status')),
        }
      },
    }),
  },
  {
    what: 'remembers workers that stopped',
    noticedBy: ['a worker that stopped is no member of its group any more'],
    config: ({ workerKeys, ...given }) => ({
      ...given,
      workerKeys: workerKeys && altered(workerKeys, { delete: async () => {} }),
    }),
  },
  {
    what: 'has one list of descriptors for all tokens',
    noticedBy: ['what workers say of themselves is read, and what cannot be read is left out'],
    transport: (it) => ({ listWorkerDescriptors: () => it.readAllWorkerDescriptors!() }),
  },
]
