import { join } from 'node:path'
import { test } from '@japa/runner'
import { readSources } from './helpers/import_graph.ts'
import { SCANNED } from './helpers/law.ts'
import { checkLaw } from './helpers/law_check.ts'
import type { Rule } from './helpers/law_check.ts'

test.group('architecture | the repository', (group) => {
  group.tap((t) => t.timeout(60_000))

  test('keeps the import law', ({ assert }) => {
    const breaches = checkLaw(readSources(join(import.meta.dirname, '..'), SCANNED))
    assert.deepEqual(
      breaches.map(({ rule, message }) => `[${rule}] ${message}`),
      []
    )
  })
})

/** Sources that break exactly one rule, each with a piece of the message that names the culprit. */
const BROKEN: [title: string, rule: Rule, culprit: RegExp, sources: Record<string, string>][] = [
  [
    'a room imports from a room above it',
    'layer',
    /types may not import replay/,
    { 'src/types/run.ts': "import type { A } from '../replay/history.ts'" },
  ],
  [
    'a room imports from its own layer',
    'layer',
    /schedules may not import insight/,
    { 'src/schedules/scheduler.ts': "import { a } from '../insight/run_detail.ts'" },
  ],
  [
    'a re-export goes up',
    'layer',
    /foundation may not import types/,
    { 'src/foundation/ids.ts': "export { a } from '../types/run.ts'" },
  ],
  [
    'a lazy import goes up',
    'layer',
    /insight may not import engine/,
    { 'src/insight/facets.ts': "export const a = () => import('../engine/api.ts')" },
  ],
  [
    'an import type inside a signature goes up',
    'layer',
    /schedules may not import turns/,
    { 'src/schedules/cron.ts': "export type A = import('../turns/needs.ts').A" },
  ],
  [
    'src imports the root door',
    'layer',
    /testing may not import index/,
    { 'src/testing/main.ts': "import { a } from '../../index.ts'" },
  ],
  [
    'a room with a list of its own imports beyond it',
    'layer',
    /ctx may not import wire/,
    { 'src/ctx/scope.ts': "import type { A } from '../wire/messages.ts'" },
  ],
  [
    'a driver imports a completion of layer 3',
    'layer',
    /store\/lucid may not import store /,
    { 'src/store/lucid/lucid_store.ts': "import { a } from '../full_store.ts'" },
  ],
  [
    'a room below layer 8 imports a driver',
    'layer',
    /gateway may not import transport\/db/,
    { 'src/gateway/responder.ts': "import { a } from '../transport/db/main.ts'" },
  ],
  [
    'an import goes past a door',
    'door',
    /src\/replay\/join\.ts is not a door of replay/,
    { 'src/turns/run_turn.ts': "import { a } from '../replay/join.ts'" },
  ],
  [
    'a door for one room is used by another',
    'door',
    /src\/replay\/guard\.ts is not a door/,
    { 'src/turns/gates.ts': "import { a } from '../replay/guard.ts'" },
  ],
  [
    'the root goes past a door',
    'door',
    /src\/engine\/assemble\.ts is not a door of engine/,
    { 'index.ts': "export { a } from './src/engine/assemble.ts'" },
  ],
  [
    'the core imports a port',
    'never',
    /replay never imports store\/ports/,
    { 'src/replay/history.ts': "import type { A } from '../store/state_store.ts'" },
  ],
  [
    'turns imports engine, as a type only',
    'never',
    /turns never imports engine/,
    { 'src/turns/run_turn.ts': "import type { A } from '../engine/api.ts'" },
  ],
  [
    'engine imports a driver',
    'never',
    /engine never imports store\/memory/,
    { 'src/engine/assemble.ts': "import { a } from '../store/memory/memory_store.ts'" },
  ],
  [
    'a driver imports the engine',
    'never',
    /transport\/db never imports engine/,
    { 'src/transport/db/db_transport.ts': "import type { A } from '../../engine/api.ts'" },
  ],
  [
    'a driver imports another driver',
    'never',
    /transport\/bullmq never imports transport\/queue/,
    { 'src/transport/bullmq/lanes.ts': "import { a } from '../queue/main.ts'" },
  ],
  [
    'a driver imports the AdonisJS binding',
    'never',
    /flow\/redis never imports adonis/,
    { 'src/flow/redis/main.ts': "import { a } from '../../adonis/tokens.ts'" },
  ],
  [
    'the thin worker imports a store',
    'never',
    /worker never imports store\/ports/,
    { 'src/worker/registry.ts': "import type { A } from '../store/state_store.ts'" },
  ],
  [
    'the thin worker reaches a store through another room',
    'never',
    /worker\/registry\.ts reaches store\/ports: .* → src\/store\/state_store\.ts/,
    {
      'src/worker/registry.ts': "import { a } from '../transport/pool.ts'",
      'src/transport/pool.ts': "import { a } from '../store/state_store.ts'",
    },
  ],
  [
    'wire imports something above the nouns',
    'never',
    /wire never imports transport/,
    { 'src/wire/codec.ts': "import type { A } from '../transport/ports.ts'" },
  ],
  [
    'two files import each other',
    'cycle',
    /src\/wire\/(codec|names)\.ts → src\/wire\/(codec|names)\.ts → /,
    {
      'src/wire/codec.ts': "import { a } from './names.ts'",
      'src/wire/names.ts': "import { b } from './codec.ts'",
    },
  ],
  [
    'a cycle closes with a type-only import',
    'cycle',
    /^(?=.*run\.ts)(?=.*step\.ts)(?=.*query\.ts)/,
    {
      'src/types/run.ts': "import type { A } from './step.ts'",
      'src/types/step.ts': "export type { B } from './query.ts'",
      'src/types/query.ts': "export type C = import('./run.ts').C",
    },
  ],
  [
    'a cycle closes with a lazy import',
    'cycle',
    /src\/loop\/tick\.ts/,
    {
      'src/loop/tick.ts': "import { a } from './worker_loop.ts'",
      'src/loop/worker_loop.ts': "export const b = () => import('./tick.ts')",
    },
  ],
  [
    'a source file is too long',
    'lines',
    /src\/wire\/codec\.ts has 401 lines, 400 are allowed/,
    { 'src/wire/codec.ts': '\n'.repeat(401) },
  ],
  [
    'the authoring API is too long',
    'lines',
    /src\/types\/ctx\.ts has 501 lines, 500 are allowed/,
    { 'src/types/ctx.ts': '\n'.repeat(501) },
  ],
  [
    'a test file is too long',
    'lines',
    /tests\/a\.spec\.ts has 501 lines, 500 are allowed/,
    { 'tests/a.spec.ts': '\n'.repeat(501) },
  ],
  [
    'the root door loads a peer',
    'peer',
    /index\.ts loads an optional peer: index\.ts → .*stores\.ts → .*lucid_store\.ts → ioredis/,
    {
      'index.ts': "export { a } from './src/adonis/stores.ts'",
      'src/adonis/stores.ts': "import { a } from '../store/lucid/lucid_store.ts'",
      'src/store/lucid/lucid_store.ts': "import 'ioredis'",
    },
  ],
  [
    'a provider loads a path inside a peer',
    'peer',
    /providers\/durable_provider\.ts loads .* → @adonisjs\/lucid\/database/,
    { 'providers/durable_provider.ts': "import { Database } from '@adonisjs/lucid/database'" },
  ],
  [
    'an import whose names are all types still loads the peer',
    'peer',
    /services\/main\.ts loads/,
    { 'services/main.ts': "import { type Redis } from '@adonisjs/redis'" },
  ],
  [
    'the thin worker loads a peer',
    'peer',
    /src\/worker\/registry\.ts loads .* → bullmq/,
    { 'src/worker/registry.ts': "import { Queue } from 'bullmq'" },
  ],
  [
    'a middle room names AdonisJS, as a type only',
    'adonis',
    /engine may not name @adonisjs\/core/,
    { 'src/engine/event_hub.ts': "import type { Emitter } from '@adonisjs/core/events'" },
  ],
  [
    'the Lucid driver names Lucid other than as a type',
    'adonis',
    /store\/lucid may not name @adonisjs\/lucid/,
    { 'src/store/lucid/rows.ts': "import { Database } from '@adonisjs/lucid/database'" },
  ],
  [
    'the Lucid driver names another AdonisJS package',
    'adonis',
    /store\/lucid may not name @adonisjs\/core/,
    { 'src/store/lucid/rows.ts': "import type { A } from '@adonisjs/core/types'" },
  ],
  [
    'the core imports a Node built-in',
    'builtin',
    /replay reaches Node only by foundation/,
    { 'src/replay/delivery.ts': "import { A } from 'node:async_hooks'" },
  ],
  [
    'an alias is used inside the package',
    'alias',
    /only relative paths survive/,
    { 'src/engine/registry.ts': "import { a } from '#src/errors'" },
  ],
  [
    'the package imports itself by name',
    'alias',
    /only relative paths survive/,
    { 'src/hooks/steps.ts': "import { a } from '@adonis-agora/durable/testing'" },
  ],
  [
    'a file stands outside every room',
    'room',
    /src\/helpers\/misc\.ts belongs to no room/,
    { 'src/helpers/misc.ts': '' },
  ],
  [
    'a source imports from the tests',
    'room',
    /tests\/helpers\/law\.ts belongs to no room/,
    { 'src/testing/harness.ts': "import { a } from '../../tests/helpers/law.ts'" },
  ],
]

test.group('architecture | every rule is enforced', () => {
  for (const [title, rule, culprit, sources] of BROKEN) {
    test(title, ({ assert }) => {
      const breaches = checkLaw(sources)
      assert.deepEqual(
        breaches.map((breach) => breach.rule),
        [rule],
        JSON.stringify(breaches, null, 2)
      )
      assert.match(breaches[0].message, culprit)
    })
  }

  test('every rule has at least one proof', ({ assert }) => {
    const all: Record<Rule, true> = {
      room: true,
      layer: true,
      never: true,
      door: true,
      cycle: true,
      lines: true,
      peer: true,
      adonis: true,
      builtin: true,
      alias: true,
    }
    assert.sameMembers([...new Set(BROKEN.map(([, rule]) => rule))], Object.keys(all))
  })
})

test.group('architecture | what the law allows', () => {
  const allowed: [title: string, sources: Record<string, string>][] = [
    [
      'imports of rooms below, through doors',
      { 'src/turns/run_turn.ts': "import { a } from '../replay/replay.ts'" },
    ],
    [
      'imports of files that are not written yet',
      { 'src/engine/assemble.ts': "import { a } from '../turns/settle.ts'" },
    ],
    [
      'a driver that reads ports and shared files of its own folder',
      { 'src/transport/queue/inbox_lane.ts': "import { a } from '../inbox.ts'" },
    ],
    [
      'a port that carries wire messages',
      { 'src/transport/ports.ts': "import type { A } from '../wire/messages.ts'" },
    ],
    [
      'a door opened for the room that asks',
      { 'src/ctx/scope.ts': "import { a } from '../replay/guard.ts'" },
    ],
    [
      'Lucid as a type in its driver',
      { 'src/store/lucid/rows.ts': "import type { A } from '@adonisjs/lucid/database'" },
    ],
    [
      'peers that a root entry loads lazily or names as types',
      {
        'providers/durable_provider.ts': [
          "import type { Redis } from '@adonisjs/redis'",
          "export const a = () => import('@adonisjs/lucid/database')",
        ].join('\n'),
      },
    ],
    [
      'files at the limit of their length',
      { 'src/wire/codec.ts': '\n'.repeat(400), 'src/types/ctx.ts': '\n'.repeat(500) },
    ],
    [
      'memory drivers in testing',
      {
        'src/testing/harness.ts': "import { a } from '../store/memory/memory_store.ts'",
      },
    ],
  ]

  for (const [title, sources] of allowed) {
    test(title, ({ assert }) => assert.deepEqual(checkLaw(sources), []))
  }
})
