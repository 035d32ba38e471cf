/*
 * The generated barrels of an application: which one there is, and whether it can be trusted. The hooks run
 * only under the dev server, the tests and the build, so outside of production a barrel is held against the
 * directories: one that is out of date would leave a new file unregistered without a word.
 */
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { RuntimeException } from '@adonisjs/core/exceptions'
import type { ApplicationService } from '@adonisjs/core/types'
import { placesOf, type Barrel } from '../authoring/barrel.ts'
import { importModule, modulesUnder } from '../authoring/discovery.ts'

export interface BarrelRequest {
  app: ApplicationService
  kind: 'workflows' | 'steps'
  /** What the config names, absolute. */
  directories: string[]
  warn: (message: string) => void
}

const DIRECTORY = '.adonisjs/durable'
const EXTENSIONS = ['ts', 'js']

/**
 * The barrel to register from; `undefined` when there is none, or one that lacks modules of the
 * directories, which is reported. Rejects for a barrel that cannot be imported or exports no map.
 */
export async function usableBarrel(request: BarrelRequest): Promise<Barrel | undefined> {
  const { app, kind } = request
  const files = EXTENSIONS.map((extension) => app.makePath(DIRECTORY, `${kind}.${extension}`))
  const file = files.find((one) => existsSync(one))
  if (file === undefined) return undefined
  const { [kind]: barrel } = await importModule(file)
  if (typeof barrel !== 'object' || barrel === null) {
    throw new RuntimeException(
      `durable: ${file} does not export "${kind}", a map of lazy imports. Delete it: the hook ` +
        `@adonis-agora/durable/hooks/${kind} writes it again`
    )
  }
  if (!app.inProduction && !(await isCurrent(barrel as Barrel, file, request))) return undefined
  return barrel as Barrel
}

async function isCurrent(barrel: Barrel, file: string, request: BarrelRequest): Promise<boolean> {
  const { app, kind, warn } = request
  const inApp = (path: string) => relative(app.makePath(), path).replaceAll('\\', '/')
  const there = new Map<string, string>()
  for (const module of await modulesUnder(request.directories)) {
    there.set(withoutExtension(inApp(module)), inApp(module))
  }
  const listed = new Map(placesOf(barrel).map((place) => [withoutExtension(place), place]))
  const missing = [...there].filter(([module]) => !listed.has(module)).map(([, path]) => path)
  const foreign = [...listed].filter(([module]) => !there.has(module)).map(([, path]) => path)
  const hint =
    `It is written when the dev server, the tests or a build start; the source of its hook must name ` +
    `the directories of config.${kind}Path`

  // Another generator may name its entries otherwise; then only their number tells.
  const hasPaths = foreign.length < listed.size || there.size === 0
  if (!hasPaths && listed.size === there.size) return true
  const gone = foreign.filter((path) => !existsSync(app.makePath(path)))
  if (missing.length > 0 || gone.length > 0) {
    const reason =
      missing.length > 0 ? `lacks ${listOf(missing)}` : `names ${listOf(gone)}, which is not there`
    warn(`${inApp(file)} ${reason}, so the directories are read instead. ${hint}`)
    return false
  }
  if (foreign.length > 0) {
    warn(`${inApp(file)} names ${listOf(foreign)} from outside of config.${kind}Path. ${hint}`)
  }
  return true
}

const withoutExtension = (path: string): string => path.replace(/\.m?[jt]s$/, '')

function listOf([first, ...others]: string[]): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`
}
