/*
 * Reads TypeScript sources into a graph of imports. Works on a map `{ path: source }`, so that a rule
 * can be proved on files that exist only in a test. Paths are relative to the repository, with `/`.
 */
import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import ts from 'typescript'

export type Sources = Record<string, string>

/** `static` also covers re-exports; `type` is erased at run time; `dynamic` is import() or require(). */
export type EdgeKind = 'static' | 'dynamic' | 'type'

export interface Edge {
  from: string
  /** A file of the repository, or null when the specifier names a package or a built-in. */
  file: string | null
  /** The specifier as written. */
  specifier: string
  kind: EdgeKind
  reexport: boolean
  line: number
}

export interface Graph {
  /** Lines of every file. */
  lines: Map<string, number>
  edges: Edge[]
  edgesOf: Map<string, Edge[]>
}

export function readSources(root: string, patterns: string[]): Sources {
  const files = globSync(patterns, { cwd: root }).map((file) => file.replaceAll('\\', '/'))
  return Object.fromEntries(
    files
      .filter((file) => !file.endsWith('.d.ts') && !file.startsWith('tests/tmp/'))
      .sort()
      .map((file) => [file, readFileSync(join(root, file), 'utf8')])
  )
}

export function buildGraph(sources: Sources): Graph {
  const graph: Graph = { lines: new Map(), edges: [], edgesOf: new Map() }
  for (const [path, source] of Object.entries(sources)) {
    const edges = readImports(path, source)
    graph.lines.set(path, source.replace(/\n$/, '').split('\n').length)
    graph.edges.push(...edges)
    graph.edgesOf.set(path, edges)
  }
  return graph
}

export function readImports(path: string, source: string): Edge[] {
  const tree = ts.createSourceFile(path, source, ts.ScriptTarget.Latest)
  const edges: Edge[] = []
  const visit = (node: ts.Node) => {
    const found = importOf(node)
    if (found && ts.isStringLiteralLike(found.specifier)) {
      const specifier = found.specifier.text
      edges.push({
        from: path,
        file: resolveRelative(path, specifier),
        specifier,
        kind: found.kind,
        reexport: ts.isExportDeclaration(node),
        line: tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1,
      })
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return edges
}

/**
 * `import { type A } from 'x'` counts as static: with `verbatimModuleSyntax` it leaves `import 'x'`
 * behind. Only `import type` is erased whole.
 */
function importOf(node: ts.Node): { specifier: ts.Node; kind: EdgeKind } | null {
  if (ts.isImportDeclaration(node)) {
    const erased = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    return { specifier: node.moduleSpecifier, kind: erased ? 'type' : 'static' }
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
    return { specifier: node.moduleSpecifier, kind: node.isTypeOnly ? 'type' : 'static' }
  }
  if (ts.isImportEqualsDeclaration(node) && ts.isExternalModuleReference(node.moduleReference)) {
    const { expression } = node.moduleReference
    return { specifier: expression, kind: node.isTypeOnly ? 'type' : 'static' }
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { specifier: node.argument.literal, kind: 'type' }
  }
  if (ts.isModuleDeclaration(node) && ts.isStringLiteral(node.name)) {
    return { specifier: node.name, kind: 'type' }
  }
  if (ts.isCallExpression(node) && node.arguments.length > 0) {
    const callee = node.expression
    const imports = callee.kind === ts.SyntaxKind.ImportKeyword
    const requires = ts.isIdentifier(callee) && callee.text === 'require'
    if (imports || requires) return { specifier: node.arguments[0], kind: 'dynamic' }
  }
  return null
}

function resolveRelative(from: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null
  return posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts')
}

/** The package a specifier names: `@scope/name` or `name`, without the path behind it. */
export function packageOf(specifier: string): string {
  const [first, second] = specifier.split('/')
  return first.startsWith('@') && second ? `${first}/${second}` : first
}

/** Files and package edges that running `entry` loads at once; type-only and lazy imports do not count. */
export function staticReach(graph: Graph, entry: string): { paths: Map<string, string[]> } {
  const paths = new Map([[entry, [entry]]])
  const queue = [entry]
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    const route = paths.get(file)!
    for (const edge of graph.edgesOf.get(file) ?? []) {
      const target = edge.file ?? edge.specifier
      if (edge.kind !== 'static' || paths.has(target)) continue
      paths.set(target, [...route, target])
      if (edge.file) queue.push(edge.file)
    }
  }
  return { paths }
}

/** One shortest cycle for every knot of files that import each other, over imports of every kind. */
export function findCycles(graph: Graph): string[][] {
  const targets = (file: string) =>
    (graph.edgesOf.get(file) ?? []).flatMap((edge) =>
      edge.file !== null && graph.lines.has(edge.file) ? [edge.file] : []
    )
  const knots = stronglyConnected([...graph.lines.keys()], targets)
  return knots.flatMap((knot) => {
    const inside = new Set(knot)
    const cycle = shortestCycle(knot[0], (file) => targets(file).filter((to) => inside.has(to)))
    return cycle ? [cycle] : []
  })
}

type Targets = (file: string) => string[]

function shortestCycle(start: string, targets: Targets): string[] | null {
  const seen = new Set<string>()
  const queue = [[start]]
  for (let route = queue.shift(); route !== undefined; route = queue.shift()) {
    for (const next of targets(route[route.length - 1])) {
      if (next === start) return [...route, start]
      if (seen.has(next)) continue
      seen.add(next)
      queue.push([...route, next])
    }
  }
  return null
}

/** Tarjan's algorithm; recursion is as deep as the longest chain of imports. */
function stronglyConnected(files: string[], targets: Targets): string[][] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const onStack = new Set<string>()
  const knots: string[][] = []

  const visit = (file: string) => {
    index.set(file, index.size)
    low.set(file, index.get(file)!)
    stack.push(file)
    onStack.add(file)
    for (const next of targets(file)) {
      if (!index.has(next)) visit(next)
      if (onStack.has(next)) low.set(file, Math.min(low.get(file)!, low.get(next)!))
    }
    if (low.get(file) !== index.get(file)) return
    const knot = stack.splice(stack.indexOf(file))
    for (const member of knot) onStack.delete(member)
    knots.push(knot)
  }

  for (const file of files) if (!index.has(file)) visit(file)
  return knots
}
