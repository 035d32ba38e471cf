/*
 * `node ace configure @adonis-agora/durable`: registers the provider, the commands and the hooks,
 * publishes the config and migrations, adds the import aliases. Running it again changes nothing.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import type Configure from '@adonisjs/core/commands/configure'
import { systemClock } from './src/foundation/clock.ts'
import { stubsRoot } from './stubs/main.ts'

const PACKAGE = '@adonis-agora/durable'
const LUCID = '@adonisjs/lucid'
/** In the order in which they run. */
const MIGRATIONS = [
  'create_durable_tables',
  'create_durable_transport_tables',
  'create_durable_transport_messages',
]
const ALIASES = {
  '#workflows/*': './app/workflows/*.js',
  '#steps/*': './app/steps/*.js',
}

interface Manifest {
  imports?: Record<string, unknown>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

/** The hook that AdonisJS calls. */
export async function configure(command: Configure): Promise<void> {
  const codemods = await command.createCodemods()
  await codemods.updateRcFile((rcFile) => {
    rcFile
      .addProvider(`${PACKAGE}/durable_provider`)
      .addCommand(`${PACKAGE}/commands`)
      .addAssemblerHook('init', `${PACKAGE}/hooks/workflows`)
      .addAssemblerHook('init', `${PACKAGE}/hooks/steps`)
  })
  const manifest = await readManifest(command)
  const usesLucid = dependsOn(manifest?.contents, LUCID)
  await codemods.makeUsingStub(stubsRoot, 'config/durable.stub', { usesLucid })
  // A migration does not compile without Lucid; where nothing is known, the application decides.
  const publishesMigrations = usesLucid || !manifest
  if (publishesMigrations) await publishMigrations(command, codemods)
  await addAliases(command, manifest)
  printNextSteps(command, publishesMigrations)
}

interface ManifestFile {
  path: string
  text: string
  contents: Manifest
}

/** package.json of the application; undefined when there is none that can be read. */
async function readManifest({ app }: Configure): Promise<ManifestFile | undefined> {
  const path = app.makePath('package.json')
  try {
    const text = await readFile(path, 'utf8')
    return { path, text, contents: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const dependsOn = (manifest: Manifest | undefined, name: string): boolean =>
  name in { ...manifest?.dependencies, ...manifest?.devDependencies }

async function publishMigrations(
  command: Configure,
  codemods: Awaited<ReturnType<Configure['createCodemods']>>
): Promise<void> {
  const published = await readdir(command.app.migrationsPath()).catch(() => [])
  const now = systemClock()
  for (const [index, name] of MIGRATIONS.entries()) {
    const known = published.find((file) => file.replace(/\.[jt]s$/, '').endsWith(`_${name}`))
    if (known) {
      command.logger.action(`create migration ${name}`).skipped(`${known} exists`)
      continue
    }
    await codemods.makeUsingStub(stubsRoot, `database/migrations/${name}.stub`, {
      // They run in this order, also when they are published within one millisecond.
      migration: { fileName: `${now + index}_${name}.ts` },
    })
  }
}

/** Adds what is missing and never touches what is there. */
async function addAliases(command: Configure, manifest: ManifestFile | undefined): Promise<void> {
  const action = command.logger.action('add import aliases to package.json')
  const existing = manifest?.contents.imports ?? {}
  const missing = Object.entries(ALIASES).filter(([alias]) => !(alias in existing))
  if (missing.length === 0) return action.skipped('they are there')
  try {
    if (!manifest) throw new Error('package.json cannot be read')
    const { path, text, contents } = manifest
    const imports = { ...existing, ...Object.fromEntries(missing) }
    const indent = /^[ \t]+/m.exec(text)?.[0] ?? '  '
    await writeFile(path, `${JSON.stringify({ ...contents, imports }, null, indent)}\n`)
    action.succeeded()
  } catch (error) {
    action.failed(error as Error)
    command.logger.info('add to "imports" in package.json:')
    for (const [alias, target] of missing) command.logger.log(`  "${alias}": "${target}"`)
  }
}

function printNextSteps(command: Configure, migrations: boolean): void {
  const tables = migrations
    ? [
        'delete the two migrations of transports.db unless you choose that transport',
        'run node ace migration:run, or leave the tables to the first boot',
      ]
    : [
        `to keep runs in a database, configure ${LUCID}, then choose stores.lucid() as the store in config/durable.ts`,
      ]
  const steps = [
    'choose a store and a transport in config/durable.ts',
    ...tables,
    'create a workflow with node ace make:workflow',
    'execute runs with node ace durable:work, or set worker.embedded in config/durable.ts',
  ]
  const box = command.ui.instructions().heading('Durable workflows: next steps')
  for (const step of steps) box.add(step)
  box.render()
}
