import { globSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from '@japa/runner'
import {
  JOB,
  buildInstanceId,
  bullNames,
  controlChannel,
  effectivePrefix,
  emitterEvents,
  keyNames,
  parseWorkerKey,
  partitionOf,
  queueNames,
  routingToken,
  sanitizeQueueToken,
  stepId,
  tenantGroup,
} from '../../src/wire/names.ts'

const ROOT = join(import.meta.dirname, '../..')
const BARE = [undefined, '', 'default']

/** What a table of names says when each of its functions gets these arguments. */
function printed(names: object, ...args: string[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(names).map(([key, value]: [string, unknown]) => [
      key,
      typeof value === 'function' ? (value as (...a: string[]) => string)(...args) : value,
    ])
  )
}

test.group('wire names', () => {
  test('sanitizeQueueToken({name}) is {token}')
    .with([
      { name: 'charge', token: 'charge' },
      { name: 'a:b:c', token: 'a-b-c' },
      { name: 'payments.charge-card', token: 'payments.charge-card' },
      { name: 'naïve name/☕ 1', token: 'naïve name/☕ 1' },
      { name: '', token: '' },
    ])
    .run(({ assert }, { name, token }) => assert.equal(sanitizeQueueToken(name), token))

  test('routingToken({name}, {partition}) is {token}')
    .with([
      { name: 'charge', partition: 'acme', token: 'charge@acme' },
      { name: 'pipeline:extract', partition: 'acme', token: 'pipeline-extract@acme' },
      { name: 'pipeline:extract', partition: undefined, token: 'pipeline-extract' },
      { name: 'pipeline:extract', partition: '', token: 'pipeline-extract' },
      { name: 'pipeline:extract', partition: 'default', token: 'pipeline-extract' },
    ])
    .run(({ assert }, { name, partition, token }) => {
      assert.equal(routingToken(name, partition), token)
      const bare = partition === undefined || partition === '' || partition === 'default'
      assert.equal(partitionOf(token, name), bare ? undefined : partition)
    })

  test('a token of another name has no partition', ({ assert }) => {
    assert.isUndefined(partitionOf('charge-card@acme', 'charge'))
    assert.isUndefined(partitionOf('somewhere', 'charge'))
    assert.isUndefined(partitionOf('charge@', 'charge'))
    assert.equal(partitionOf('a@b@c', 'a@b'), 'c')
  })

  test('unset, empty and default pools are bare', ({ assert }) => {
    for (const pool of BARE) {
      assert.equal(tenantGroup('g', pool), 'g')
      assert.equal(effectivePrefix('durable', pool), 'durable')
      assert.equal(emitterEvents(pool).task, 'durable.task')
      assert.equal(queueNames('durable', pool).results, 'durable:results')
    }
    assert.equal(tenantGroup('g', 'acme'), 'g@acme')
    assert.equal(effectivePrefix('durable', 'acme'), 'durable-acme')
  })

  test('step and instance ids', ({ assert }) => {
    assert.equal(stepId('run-abc', 3), 'run-abc:3')
    assert.equal(buildInstanceId(), `ts-${hostname()}-${process.pid}`)
  })

  test('queues of the queue transport', ({ assert }) => {
    assert.deepEqual(printed(queueNames('durable', 'acme'), 'x'), {
      tasks: 'durable-acme:tasks:x',
      results: 'durable-acme:results',
      heartbeats: 'durable-acme:heartbeats',
      control: 'durable-acme:control',
      decisions: 'durable-acme:decisions',
      stepEvents: 'durable-acme:step-events',
      startRun: 'durable-acme:start-run',
      runRequest: 'durable-acme:run-request',
      runReplies: 'durable-acme:run-replies:x',
      tenantEvents: 'durable-acme:tenant-events:x',
      inboxRegistrations: 'durable-acme:inbox-registrations',
      runs: 'durable:runs:x',
    })
  })

  test('queues and channels of the bullmq transport', ({ assert }) => {
    assert.deepEqual(printed(bullNames('durable', 'acme'), 'x'), {
      tasks: 'durable-acme-tasks-x',
      results: 'durable-acme-results',
      decisions: 'durable-acme-decisions',
      stepEvents: 'durable-acme-step-events',
      startRun: 'durable-acme-start-run',
      runRequest: 'durable-acme-run-request',
      runs: 'durable-runs-x',
      heartbeat: 'durable-acme-heartbeat',
      runReply: 'durable-acme-run-reply',
      tenantEvents: 'durable-acme-tenant-events-x',
      control: 'durable-acme-control',
    })
    assert.equal(controlChannel('durable'), 'durable-control')
  })

  test('no BullMQ queue name holds a colon', ({ assert }) => {
    const names = bullNames('durable', 'acme')
    for (const name of [names.tasks(routingToken('a:b', 'acme')), names.results, names.runs('*')]) {
      assert.notInclude(name, ':')
    }
  })

  test('liveness keys', ({ assert }) => {
    const keys = keyNames('durable', 'acme')
    assert.equal(
      keys.workerHeartbeat('charge@acme', 'ts-h-1'),
      'durable-acme-worker-heartbeat:charge@acme:ts-h-1'
    )
    assert.equal(
      keyNames('durable').workerDescriptor('charge', 'i'),
      'durable-worker-descriptor:charge:i'
    )
    assert.equal(keys.workerHeartbeats(), 'durable-acme-worker-heartbeat:')
    assert.equal(keys.workerHeartbeats('t'), 'durable-acme-worker-heartbeat:t:')
    assert.equal(keys.inbox('i'), 'durable-acme-inbox:i')
    assert.equal(keys.tenantSubscriber('acme', 'i'), 'durable-acme-tenant-subscriber:acme:i')
    assert.equal(keys.tenantSubscribers('acme'), 'durable-acme-tenant-subscriber:acme:')
  })

  test('worker keys are read back; the token ends at the first colon', ({ assert }) => {
    const keys = keyNames('durable')
    const start = keys.workerHeartbeats()
    assert.deepEqual(parseWorkerKey(keys.workerHeartbeat('charge@a', 'host:1'), start), {
      token: 'charge@a',
      instanceId: 'host:1',
    })
    for (const broken of [start, `${start}charge`, `${start}charge:`, `${start}:i`, 'other:a:b']) {
      assert.isUndefined(parseWorkerKey(broken, start))
    }
  })

  test('no other module puts a name on a broker together', ({ assert }) => {
    // A name that leaves out the namespace would split a fleet without a word.
    const composed = /\$\{[\w.#!]*prefix\}|prefix \+|effectivePrefix|['"`]durable[-.]/i
    const files = globSync('src/{adonis,control_plane,engine,transport}/**/*.ts', { cwd: ROOT })
    assert.isAbove(files.length, 100)
    const found = files.flatMap((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .filter((line) => composed.test(line))
        .map((line) => `${file}: ${line.trim()}`)
    )
    assert.deepEqual(found, [])
  })

  test('emitter events', ({ assert }) => {
    assert.deepEqual(emitterEvents('acme'), {
      task: 'durable.task:acme',
      result: 'durable.result:acme',
      heartbeat: 'durable.heartbeat:acme',
      control: 'durable.control:acme',
    })
  })

  test('job names', ({ assert }) => {
    assert.deepEqual(Object.keys(JOB), Object.values(JOB))
    assert.includeMembers(Object.values(JOB), ['task', 'workflow', 'result', 'decision'])
  })
})
