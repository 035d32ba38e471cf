/*
 * Holds a set of sources against the import law (`law.ts`) and names every breach. Pure: the caller
 * gives the files, real ones or a handful made up to prove a rule. Rooms and files that do not exist
 * yet are no breach.
 */
import { matchesGlob } from 'node:path'
import { buildGraph, findCycles, packageOf, staticReach } from './import_graph.ts'
import type { Edge, Graph, Sources } from './import_graph.ts'
import {
  ADONIS,
  DRIVER_READS_UP_TO,
  LINE_LIMITS,
  NEVER,
  NO_BUILTINS,
  PEERS,
  READS_DRIVERS_FROM,
  ROOMS,
  ROOT_ENTRIES,
} from './law.ts'
import type { Room } from './law.ts'

export type Rule =
  'room' | 'layer' | 'never' | 'door' | 'cycle' | 'lines' | 'peer' | 'adonis' | 'builtin' | 'alias'

export interface Breach {
  rule: Rule
  message: string
}

const PACKAGE = '@adonis-agora/durable'

export function checkLaw(sources: Sources): Breach[] {
  const graph = buildGraph(sources)
  const governed = [...graph.lines.keys()].filter((file) => !isTest(file))
  return [
    ...governed.filter((file) => !roomOf(file)).map(homeless),
    ...graph.edges.filter((edge) => !isTest(edge.from)).flatMap(checkEdge),
    ...governed.flatMap((file) => checkReach(graph, file)),
    ...findCycles(graph).map(describeCycle),
    ...[...graph.lines].flatMap(([file, lines]) => checkLength(file, lines)),
  ]
}

const homes = new Map<string, Room | undefined>()

export function roomOf(file: string): Room | undefined {
  if (!homes.has(file)) {
    homes.set(
      file,
      ROOMS.find((candidate) => matchesAny(file, candidate.files))
    )
  }
  return homes.get(file)
}

function checkEdge(edge: Edge): Breach[] {
  const from = roomOf(edge.from)
  if (!from) return []
  return edge.file === null ? checkPackage(edge, from) : checkFile(edge, edge.file, from)
}

function checkFile(edge: Edge, file: string, from: Room): Breach[] {
  const to = roomOf(file)
  if (!to) return [breach('room', edge, `${file} belongs to no room that may be imported`)]
  if (to === from) return []

  const breaches: Breach[] = []
  const ban = NEVER.find((rule) => names(rule.from, from) && names(rule.to, to))
  if (ban) {
    breaches.push(breach('never', edge, `${from.name} never imports ${to.name}: ${ban.because}`))
  } else if (!mayRead(from, to)) {
    const layers = `layer ${from.layer} → layer ${to.layer}`
    breaches.push(breach('layer', edge, `${from.name} may not import ${to.name} (${layers})`))
  }
  if (familyOf(from) !== familyOf(to) && !isDoor(file, from, to)) {
    breaches.push(breach('door', edge, `${file} is not a door of ${to.name}`))
  }
  return breaches
}

function mayRead(from: Room, to: Room): boolean {
  if (from.also?.includes(to.name)) return true
  if (from.only) return from.only.includes(to.name)
  if (to.layer === 'driver') return from.layer !== 'driver' && from.layer >= READS_DRIVERS_FROM
  if (from.layer === 'driver') return to.layer <= DRIVER_READS_UP_TO
  return to.layer < from.layer
}

function isDoor(file: string, from: Room, to: Room): boolean {
  if (matchesAny(file, to.doors)) return true
  const opened = Object.entries(to.doorsFor ?? {})
  return opened.some(([door, readers]) => matchesGlob(file, door) && readers.includes(from.name))
}

/** Rooms that share a folder of `src` know each other's files; layers still hold between them. */
function familyOf({ name }: Room): string {
  return name.split('/')[0]
}

function checkPackage(edge: Edge, from: Room): Breach[] {
  const { specifier, kind } = edge
  const name = packageOf(specifier)
  if (specifier.startsWith('#') || name === PACKAGE) {
    return [breach('alias', edge, 'inside the package only relative paths survive publication')]
  }
  if (specifier.startsWith('node:')) {
    const barred = NO_BUILTINS.includes(from.name)
    return barred ? [breach('builtin', edge, `${from.name} reaches Node only by foundation`)] : []
  }
  if (!name.startsWith('@adonisjs/') || ADONIS.rooms.includes(from.name)) return []
  if (kind === 'type' && ADONIS.types[from.name]?.includes(name)) return []
  return [breach('adonis', edge, `${from.name} may not name ${name}`)]
}

/** What a file pulls in by being imported, through any number of steps. */
function checkReach(graph: Graph, file: string): Breach[] {
  const from = roomOf(file)
  const isEntry = matchesAny(file, ROOT_ENTRIES)
  const bans = NEVER.filter((rule) => rule.reach && from && names(rule.from, from))
  if (!isEntry && bans.length === 0) return []

  return [...staticReach(graph, file).paths].flatMap(([target, route]): Breach[] => {
    const how = route.join(' → ')
    if (isEntry && PEERS.includes(packageOf(target))) {
      return [{ rule: 'peer', message: `${file} loads an optional peer: ${how}` }]
    }
    const to = roomOf(target)
    const ban = bans.find((rule) => to && names(rule.to, to))
    // A direct import is named by checkFile already.
    if (!ban || route.length <= 2) return []
    return [{ rule: 'never', message: `${file} reaches ${to!.name}: ${how} (${ban.because})` }]
  })
}

function checkLength(file: string, lines: number): Breach[] {
  const limit = LINE_LIMITS.find(([pattern]) => matchesGlob(file, pattern))?.[1]
  if (limit === undefined || lines <= limit) return []
  return [{ rule: 'lines', message: `${file} has ${lines} lines, ${limit} are allowed` }]
}

function describeCycle(cycle: string[]): Breach {
  return { rule: 'cycle', message: `cycle: ${cycle.join(' → ')}` }
}

function homeless(file: string): Breach {
  return { rule: 'room', message: `${file} belongs to no room; tests/helpers/law.ts lists them` }
}

function breach(rule: Rule, edge: Edge, why: string): Breach {
  return { rule, message: `${edge.from}:${edge.line} imports '${edge.specifier}': ${why}` }
}

function names(list: string[], { name, layer }: Room): boolean {
  return list.includes(name) || (layer === 'driver' && list.includes('driver'))
}

function matchesAny(file: string, patterns: string[]): boolean {
  return patterns.some((pattern) => matchesGlob(file, pattern))
}

function isTest(file: string): boolean {
  return file.startsWith('tests/') || file.startsWith('bin/')
}
