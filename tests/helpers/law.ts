/*
 * The import law as data. A room is a folder (or a few files of one); rooms form layers, and a file
 * imports from its own room or from rooms below it. Between folders of `src` only door files may be
 * imported. To add a room, a door or an exception, edit this file; `law_check.ts` holds the reading.
 */

export interface Room {
  name: string
  /** Globs of the files in the room; the first room that matches a file owns it. */
  files: string[]
  /** Drivers stand beside the layers: they read 0 to 2 and nobody below layer 8 reads them. */
  layer: number | 'driver'
  /** Globs of the files that other folders may import. */
  doors: string[]
  /** Doors for some readers only: glob of the file → rooms. */
  doorsFor?: Record<string, string[]>
  /** When given, these rooms and no others, instead of all rooms below. */
  only?: string[]
  /** Rooms that may be imported besides those below. */
  also?: string[]
}

export const DRIVER_READS_UP_TO = 2
export const READS_DRIVERS_FROM = 8

const driver = (folder: string, ...doors: string[]): Room => ({
  name: folder,
  files: [`src/${folder}/**`],
  layer: 'driver',
  doors: ['main.ts', ...doors].map((door) => `src/${folder}/${door}`),
})

const room = (layer: number, name: string, doors: string[], more: Partial<Room> = {}): Room => ({
  name,
  files: [`src/${name}/**`],
  layer,
  doors: doors.map((door) => `src/${name}/${door}`),
  ...more,
})

const root = (name: string, files: string[]): Room => ({ name, files, layer: 9, doors: files })

const EVERYTHING = ['**']

export const ROOMS: Room[] = [
  room(0, 'foundation', EVERYTHING),

  room(1, 'types', EVERYTHING),
  { name: 'errors', files: ['src/errors.ts'], layer: 1, doors: ['src/errors.ts'] },

  driver('store/memory', 'memory_store.ts'),
  driver(
    'store/lucid',
    'lucid_store.ts',
    'schema/ensure.ts',
    'schema/revision.ts',
    'schema/tables.ts'
  ),
  driver('store/codec', 'codec_store.ts'),
  driver('transport/memory', 'memory_transport.ts'),
  driver('transport/event_emitter', 'event_emitter_transport.ts'),
  driver('transport/queue', 'queue_transport.ts'),
  driver('transport/bullmq', 'bullmq_transport.ts'),
  driver('transport/db', 'db_transport.ts', 'schema.ts', 'keys.ts'),
  driver('control_plane/redis', 'redis_control_plane.ts'),
  driver('flow/redis', 'redis_admission.ts'),

  room(2, 'redis', EVERYTHING),
  room(2, 'wire', EVERYTHING),
  // What the drivers over a Lucid database share.
  room(2, 'sql', EVERYTHING),
  room(2, 'authoring', EVERYTHING),
  room(
    2,
    'replay',
    [
      'replay.ts',
      'history.ts',
      'commands.ts',
      'outcome.ts',
      'open_await.ts',
      'completion.ts',
      'folds.ts',
      'turn_replay.ts',
    ],
    {
      doorsFor: { 'src/replay/guard.ts': ['ctx'] },
    }
  ),
  {
    name: 'store/ports',
    files: ['src/store/ports/**', 'src/store/state_store.ts'],
    layer: 2,
    doors: ['src/store/ports/**', 'src/store/state_store.ts'],
  },
  {
    name: 'flow/port',
    files: ['src/flow/port.ts', 'src/flow/queue_config.ts'],
    layer: 2,
    doors: ['src/flow/port.ts', 'src/flow/queue_config.ts'],
  },
  // The ports below carry wire messages, which stand in the same layer.
  room(2, 'control_plane', ['port.ts', 'local.ts'], { also: ['wire'] }),

  {
    name: 'transport/pool',
    files: ['src/transport/pool.ts'],
    layer: 3,
    doors: ['src/transport/pool.ts'],
  },
  room(
    2,
    'transport',
    [
      'ports.ts',
      'run_step_handler.ts',
      'step_logger.ts',
      'consumer_gate.ts',
      'concurrency_options.ts',
    ],
    { also: ['wire'] }
  ),
  room(3, 'store', ['full_store.ts', 'paging.ts']),
  room(3, 'ctx', ['create_ctx.ts'], {
    only: ['foundation', 'types', 'errors', 'replay', 'authoring'],
  }),

  room(4, 'flow', ['step_queues.ts', 'quotas.ts', 'singletons.ts', 'memory_admission.ts']),
  room(4, 'schedules', ['scheduler.ts', 'schedule_client.ts']),
  room(4, 'insight', [
    'run_detail.ts',
    'fans.ts',
    'fan_reads.ts',
    'etags.ts',
    'explain.ts',
    'explain_run.ts',
    'explain_text.ts',
    'plain_text.ts',
    'facets.ts',
    'lineage.ts',
    'stalled.ts',
    'waiting.ts',
  ]),

  room(5, 'turns', [
    'turn_queue.ts',
    'run_turn.ts',
    'needs.ts',
    'performer.ts',
    'effects.ts',
    'settle.ts',
    'warm_runs.ts',
    'lease_keeper.ts',
  ]),

  room(6, 'engine', ['workflow_engine.ts', 'api.ts', 'deps.ts']),

  room(7, 'gateway', ['main.ts', 'run_gateway.ts']),
  room(7, 'loop', ['main.ts', 'tick.ts', 'worker_loop.ts']),
  room(7, 'worker', ['main.ts', 'worker_runtime.ts', 'run_workflow_turn.ts'], {
    only: [
      'foundation',
      'types',
      'errors',
      'wire',
      'authoring',
      'replay',
      'ctx',
      'transport',
      'transport/pool',
      'control_plane',
    ],
  }),
  room(7, 'observability', ['main.ts', 'otel/main.ts', 'telescope/main.ts']),
  room(7, 'dashboard', ['main.ts'], { also: ['gateway'] }),
  room(7, 'testing', ['main.ts', 'conformance.ts'], {
    also: ['store/memory', 'transport/memory', 'transport/event_emitter'],
  }),

  room(8, 'adonis', [
    'define_config.ts',
    'stores.ts',
    'transports.ts',
    'control_planes.ts',
    'admissions.ts',
    'roles/*.ts',
    'boot_*.ts',
    'booted_app.ts',
    'run_command.ts',
    'slots.ts',
    'tokens.ts',
  ]),
  room(8, 'hooks', EVERYTHING),

  root('providers', ['providers/**']),
  root('services', ['services/**']),
  { ...root('commands', ['commands/**']), also: ['stubs'] },
  root('stubs', ['stubs/**']),
  { ...root('configure', ['configure.ts']), also: ['stubs'] },
  { ...root('index', ['index.ts']), also: ['configure', 'stubs'] },
]

/**
 * Said in words, so that no exception in the table above can undo it. `driver` stands for every driver;
 * `reach` also forbids what is loaded through any number of other files.
 */
export const NEVER: { from: string[]; to: string[]; because: string; reach?: boolean }[] = [
  {
    from: ['replay', 'ctx', 'authoring'],
    to: [
      'store/ports',
      'store',
      'transport',
      'transport/pool',
      'control_plane',
      'flow/port',
      'driver',
      'turns',
      'engine',
    ],
    because: 'the core and the authoring API know no port, no driver, no turn and no engine',
  },
  {
    from: ['turns'],
    to: ['engine'],
    because: 'turns declares what it needs in turns/needs.ts; the engine passes it in',
  },
  { from: ['engine', 'turns'], to: ['driver'], because: 'drivers reach the engine as ports' },
  {
    from: ['driver'],
    to: ['engine', 'driver', 'adonis'],
    because: 'a driver knows its port and its peer, nothing else',
  },
  {
    from: ['worker'],
    to: ['store', 'store/ports', 'store/memory', 'store/lucid', 'store/codec'],
    because: 'the thin worker has no store',
    reach: true,
  },
  {
    from: ['wire'],
    to: ['authoring', 'replay', 'store/ports', 'transport', 'control_plane', 'flow/port', 'driver'],
    because: 'messages know nothing above the nouns',
  },
]

/** Rooms that may import `node:*` only through `foundation`. */
export const NO_BUILTINS = ['replay']

/** Who may name `@adonisjs/*`; `types` lists packages that a room may name in `import type`. */
export const ADONIS = {
  rooms: ['adonis', 'hooks', 'providers', 'services', 'commands', 'configure'],
  types: {
    'sql': ['@adonisjs/lucid'],
    'store/lucid': ['@adonisjs/lucid'],
    'transport/db': ['@adonisjs/lucid'],
  } as Record<string, string[]>,
}

/** Optional peers, which no root entry may load just by being imported. */
export const PEERS = [
  'bullmq',
  'ioredis',
  '@adonisjs/lucid',
  '@adonisjs/queue',
  '@adonisjs/redis',
  '@japa/runner',
  '@opentelemetry/api',
  'vitest',
  'cron-parser',
]
export const ROOT_ENTRIES = [
  'index.ts',
  'providers/*.ts',
  'services/main.ts',
  'src/testing/main.ts',
  'src/testing/conformance.ts',
  'src/worker/**',
]

/** The first pattern that matches a file sets its limit. */
export const LINE_LIMITS: [pattern: string, limit: number][] = [
  ['src/types/ctx.ts', 500],
  // Lists of names.
  ['index.ts', 600],
  ['tests/api/reference.ts', 700],
  ['tests/**', 500],
  ['**', 400],
]

/** What the architecture test reads. */
export const SCANNED = [
  'index.ts',
  'configure.ts',
  '{src,providers,services,commands,stubs,tests,bin}/**/*.ts',
]
