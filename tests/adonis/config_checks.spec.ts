import { RuntimeException } from '@adonisjs/core/exceptions'
import { test } from '@japa/runner'
import { defineConfig, InMemoryStateStore, stores, transports } from '../../index.ts'
import { checkConfig } from '../../src/adonis/config_checks.ts'
import { InMemoryAdmissionBackend } from '../../src/flow/memory_admission.ts'
import type { DurableConfig } from '../../src/adonis/define_config.ts'

const memory = transports.memory()

const RETENTION_REFUSED: [title: string, retention: unknown, message: string][] = [
  ['retention that is no object', '30d', 'config.retention must be an object'],
  [
    'an age of runs that have not ended',
    { running: '1d' },
    'config.retention.running is unknown: use completed, failed, cancelled, dead, policies',
  ],
  [
    'an age that is none',
    { failed: 'long' },
    'config.retention.failed cannot be used: invalid duration "long"',
  ],
  [
    'policies that are no list',
    { policies: {} },
    'config.retention.policies must be a list of policies',
  ],
  [
    'a policy without a bound',
    { policies: [{ statuses: ['failed'], scope: {} }] },
    'config.retention.policies[0] bounds nothing: give it maxAge, maxCount or both',
  ],
  [
    'a policy without statuses',
    { policies: [{ statuses: [], maxAge: '1d', scope: {} }] },
    'config.retention.policies[0].statuses must list at least one of completed, failed',
  ],
  [
    'a policy for live runs',
    { policies: [{ statuses: ['failed', 'suspended'], maxAge: '1d', scope: {} }] },
    'config.retention.policies[0].statuses has "suspended", which no run ends with',
  ],
  [
    'a policy without a scope',
    { policies: [{ statuses: ['failed'], maxAge: '1d' }] },
    'config.retention.policies[0].scope is missing: write {} if every run is meant',
  ],
  [
    'a scope whose value got lost',
    { policies: [{ statuses: ['failed'], maxAge: '1d', scope: { workflow: undefined } }] },
    'config.retention.policies[0].scope has no value for workflow. Pass {} if every run is meant',
  ],
  [
    'a scope with statuses of its own',
    { policies: [{ statuses: ['failed'], maxAge: '1d', scope: { status: 'dead' } }] },
    'config.retention.policies[0].scope.status belongs into the statuses of the policy',
  ],
  [
    'a misspelt predicate',
    { policies: [{ statuses: ['failed'], maxAge: '1d', scope: { workfow: 'a' } }] },
    'config.retention.policies[0].scope has no predicate "workfow"',
  ],
  [
    'a time that is none',
    { policies: [{ statuses: ['failed'], maxAge: '1d', scope: { createdBefore: '2020' } }] },
    'config.retention.policies[0].scope needs epoch ms for createdBefore, got "2020"',
  ],
  [
    'a number of runs that is none',
    { policies: [{ statuses: ['failed'], maxCount: 1.5, scope: {} }] },
    'config.retention.policies[0].maxCount must be a whole number of at least 0, got 1.5',
  ],
  [
    'a misspelt bound',
    { policies: [{ statuses: ['failed'], max: 1, scope: {} }] },
    'config.retention.policies[0].max is unknown: use statuses, maxAge, maxCount, scope',
  ],
]

const REFUSED: [title: string, config: unknown, message: string][] = [
  [
    'a store that is not defined',
    { store: 'lucid', stores: { other: stores.lucid() } },
    'config.store is "lucid", but config.stores.lucid is not defined',
  ],
  [
    'a store when there are none',
    { store: 'lucid' },
    'config.store is "lucid", but config.stores.lucid is not defined',
  ],
  [
    'a store named after an inherited property',
    { store: 'toString', stores: {} },
    'config.store is "toString", but config.stores.toString is not defined',
  ],
  [
    'a transport that is not defined',
    { transport: 'queue', transports: { memory } },
    'config.transport is "queue", but config.transports.queue is not defined',
  ],
  [
    'a pool member that is not defined',
    { transport: 'memory', transports: { memory }, transportPool: ['memory', 'spare'] },
    'config.transportPool[1] is "spare", but config.transports.spare is not defined',
  ],
  [
    'a pool without a first transport',
    { transports: { memory }, transportPool: ['memory'] },
    'config.transportPool needs config.transport, the transport that is tried first',
  ],
  [
    'a store that is no key',
    { store: stores.lucid() },
    'config.store must be a key of config.stores, got',
  ],
  [
    'a factory that was not written',
    { stores: { lucid: 'lucid' } },
    'config.stores.lucid must be a factory, such as those of the package, got "lucid"',
  ],
  [
    'a process that does not drive and embeds the loop',
    { drive: false, worker: { embedded: true } },
    'config.worker.embedded runs the loop in this process, and config.drive is false: drop one',
  ],
  [
    'a control plane',
    { role: 'control-plane', store: 'x', verifyTenant: () => null },
    'config.role "control-plane" is not supported by this release: only "standalone" is',
  ],
  [
    'a tenant',
    { role: 'tenant', partition: 'eu', transport: 'queue' },
    'config.role "tenant" is not supported by this release: only "standalone" is',
  ],
  ['an unknown role', { role: 'worker' }, 'config.role must be "standalone", got "worker"'],
  [
    'a duration written as text',
    { leaseMs: '30s' },
    'config.leaseMs must be a number of milliseconds of at least 1, got "30s"',
  ],
  [
    'a lease of nothing',
    { leaseMs: 0 },
    'config.leaseMs must be a number of milliseconds of at least 1, got 0',
  ],
  [
    'a negative budget',
    { drainTimeoutMs: -1 },
    'config.drainTimeoutMs must be a number of milliseconds of at least 0, got -1',
  ],
  [
    'a number that is none',
    { maxRecoveryAttempts: Number.NaN },
    'config.maxRecoveryAttempts must be a number of at least 0, got NaN',
  ],
  [
    'an interval of nothing',
    { worker: { intervalMs: 0 } },
    'config.worker.intervalMs must be a number of milliseconds of at least 1, got 0',
  ],
  [
    'a misspelled key of the worker',
    { worker: { embeded: true } },
    'config.worker.embeded is no option of config/durable.ts: check its spelling, or remove it',
  ],
  [
    'a misspelled key',
    { leaseMS: 1000 },
    'config.leaseMS is no option of config/durable.ts: check its spelling, or remove it',
  ],
  [
    'an idle time that cannot be read',
    { continuations: { idleMs: '5 moons' } },
    'config.continuations.idleMs cannot be used: unknown duration unit "moons"',
  ],
  [
    'continuations switched on by true',
    { continuations: true },
    'config.continuations must be false or an object { max, idleMs }',
  ],
  ['an empty name', { instanceId: '' }, 'config.instanceId must not be empty'],
  [
    'a namespace no store keeps',
    { namespace: 'x'.repeat(300) },
    'config.namespace is 300 bytes long, at most 255 are allowed',
  ],
  [
    'a mode of consumption that does not exist',
    { consumers: 'sometimes' },
    'config.consumers must be one of "auto", "always", "never", got "sometimes"',
  ],
  [
    'a dispatcher without dispatch',
    { runDispatcher: () => {} },
    'config.runDispatcher must be an object with a dispatch(runId) method',
  ],
  [
    'a directory that is none',
    { workflowsPath: true },
    'config.workflowsPath must be a directory, a list of directories or false, got true',
  ],
  [
    'a list with something else in it',
    { stepsPath: ['app/steps', 1] },
    'config.stepsPath must be a directory, a list of directories or false, got 1',
  ],
  [
    'a list of lists for a config',
    [],
    'config/durable.ts must export an object: export default defineConfig({ … })',
  ],
  [
    'schedules that are no list',
    { schedules: {} },
    'config.schedules must be a list of schedules, got an object',
  ],
  [
    'a schedule without a key',
    { schedules: [{ workflow: 'a', everyMs: 1 }] },
    'config.schedules[0] cannot be used: schedule undefined: the key must be a string',
  ],
  [
    'a schedule without a cadence, by its key',
    { schedules: [{ key: 'nightly', workflow: 'a' }] },
    'config.schedules[0] cannot be used: schedule "nightly" needs exactly one of everyMs and cron',
  ],
  [
    'a misspelt option of a schedule',
    { schedules: [{ key: 'nightly', workflow: 'a', every: '1h' }] },
    'schedule "nightly" has no option "every": check its spelling, or remove it',
  ],
  [
    'two schedules with one key',
    {
      schedules: [
        { key: 'nightly', workflow: 'a', everyMs: 1 },
        { key: 'nightly', workflow: 'b', everyMs: 1 },
      ],
    },
    'config.schedules[1] has the key of another: "nightly"',
  ],
  ...RETENTION_REFUSED.map(([title, retention, message]): [string, unknown, string] => [
    title,
    { retention },
    message,
  ]),
  [
    'a silence that is no duration',
    { stalledAfter: 'soon' },
    'config.stalledAfter cannot be used: invalid duration "soon"',
  ],
]

REFUSED.push(
  ['queues that are no list', { queues: {} }, 'config.queues must be a list of queues'],
  ['a queue that is none', { queues: ['q'] }, 'config.queues[0]: the queue name must be a string'],
  [
    'a queue without a slot',
    { queues: [{ name: 'q' }, { name: 'p', concurrency: 0 }] },
    'config.queues[1]: concurrency of queue "p" must be a whole number of at least 1',
  ],
  [
    'an option that a queue does not have',
    { queues: [{ name: 'q', limit: 1 }] },
    'config.queues[0]: limit of queue "q" is no option of a queue; it has name, concurrency',
  ],
  [
    'two queues with one name',
    { queues: [{ name: 'q' }, { name: 'q', concurrency: 2 }] },
    'config.queues[1] has the name of another: "q"',
  ],
  [
    'an admission that is none',
    { admission: 'redis' },
    'config.admission must be an admission backend, or a factory of one',
  ],
  [
    'an admission that lacks members',
    { admission: { tryAdmit: () => {} } },
    'config.admission must be an admission backend; this one lacks registerQueue, handles, release, onFreed, or',
  ]
)

const LATER = [
  'remoteAdvanceSilenceMs',
  'blockedPollMs',
  'verifyTenant',
  'partition',
  'tenant',
  'capabilities',
  'requestTimeoutMs',
]

test.group('Config checks', () => {
  for (const [title, config, message] of REFUSED) {
    test(`refuses ${title}`, ({ assert }) => {
      const error = thrownBy(() => checkConfig(config))
      assert.instanceOf(error, RuntimeException)
      assert.include((error as Error).message, message)
    })
  }

  for (const key of LATER) {
    test(`refuses ${key}, which a later release serves`, ({ assert }) => {
      const error = thrownBy(() => checkConfig({ [key]: true }))
      assert.equal(
        (error as Error).message,
        `config.${key} is not supported by this release: remove it`
      )
    })
  }

  test('a key without a value is as good as absent', ({ assert }) => {
    const config = { leaseMs: undefined, schedules: undefined, worker: { embedded: undefined } }
    assert.equal(checkConfig(config), config as DurableConfig)
  })

  test('takes everything that works', ({ assert }) => {
    const config: Required<DurableConfig> = {
      controlPlane: { publishControl: async () => {}, onControl() {} },
      role: 'standalone',
      schedules: [
        { key: 'nightly', workflow: 'report', cron: '0 2 * * *', timezone: 'Europe/Berlin' },
      ],
      persistedSchedules: true,
      scopeReads: true,
      queues: [{ name: 'q', concurrency: 1, rateLimit: { limit: 1, periodMs: 1 } }],
      admission: new InMemoryAdmissionBackend(),
      transport: 'a',
      transports: { a: memory, b: memory },
      transportPool: ['b'],
      store: 's',
      stores: { s: new InMemoryStateStore() },
      autoSchema: false,
      traceparent: () => undefined,
      trackStepStart: false,
      deadLetterWorkflow: 'bury',
      leaseMs: 1,
      instanceId: 'web',
      namespace: '',
      maxRecoveryAttempts: Number.POSITIVE_INFINITY,
      compensationRetries: 1,
      compensationTimeoutMs: 0,
      runDispatcher: { dispatch: () => {} },
      drive: true,
      drainTimeoutMs: 0,
      consumers: 'never',
      worker: { embedded: true, intervalMs: 1, drainTimeoutMs: 0 },
      webhookUrl: (token) => token,
      eventBufferTtl: '7d',
      retention: {
        completed: '30d',
        dead: 0,
        policies: [
          { statuses: ['failed'], maxAge: '1h', maxCount: 0, scope: { tag: 'tier:free' } },
          { statuses: ['completed', 'cancelled'], maxCount: 10, scope: {} },
        ],
      },
      stalledAfter: '15m',
      remoteRedispatchMs: 1,
      remoteRedispatchMax: 1,
      timerBatchSize: 1,
      reconcileMs: -1,
      workflowsPath: ['app/workflows', 'modules'],
      stepsPath: false,
      continuations: { max: 0, idleMs: '1m' },
      maxPayloadBytes: 1,
    }
    assert.equal(checkConfig(config), config)
  })
})

test.group('defineConfig', () => {
  test('fills in the role and leaves the rest alone', ({ assert }) => {
    assert.deepEqual(defineConfig(), { role: 'standalone' })
    assert.deepEqual(defineConfig({ role: undefined, leaseMs: 5 }), {
      role: 'standalone',
      leaseMs: 5,
    })
  })

  test('knows its keys at compile time', ({ assert }) => {
    // @ts-expect-error -- misspelled
    defineConfig({ leaseMS: 5 })
    // @ts-expect-error -- a role of a later release
    defineConfig({ role: 'tenant' })
    // @ts-expect-error -- durations are numbers
    defineConfig({ leaseMs: '30s' })
    assert.isTrue(true)
  })
})

function thrownBy(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error
  }
  return undefined
}
