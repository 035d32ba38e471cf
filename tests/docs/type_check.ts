/*
 * Type-checks the TypeScript blocks of the documentation against the sources, all of them in one program.
 * A block whose first line is a comment with a path (`// app/workflows/order_workflow.ts`) is that file of
 * an application, which the other blocks of its page can import as `#workflows/order_workflow`. What a page
 * does not show is taken from `fixtures/app`. `<!-- prelude: name -->` before a block brings the exports of
 * `fixtures/preludes/name.ts` into its scope.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'
import { type Block, type Page, ROOT } from './markdown.ts'

const FIXTURES = join(ROOT, 'tests/docs/fixtures')
const VIRTUAL = join(ROOT, 'tests/docs/pages')
const PACKAGE = '@adonis-agora/durable'
/** Where an import of the application is looked for when it has no file of its own. */
const OUTSIDE = join(FIXTURES, 'outside.ts')

interface VirtualFile {
  page: Page
  block: Block
  text: string
  /** Lines put before the block. */
  offset: number
}

/** Everything that the pages show, beside the sources they are about. */
export class Examples {
  readonly #files: Map<string, VirtualFile>
  readonly #program: ts.Program

  constructor(pages: Page[]) {
    this.#files = new Map(pages.flatMap((page) => virtualFiles(page)))
    const options = compilerOptions()
    const host = hostOver(this.#files, options)
    const rootNames = [...this.#files.keys(), join(ROOT, 'index.ts'), OUTSIDE]
    this.#program = ts.createProgram({ rootNames, options, host })
  }

  /** What is wrong with the examples of a page, as `file:line message`. */
  breachesOf(page: Page): string[] {
    return [...this.#files].flatMap(([name, file]) => {
      if (file.page !== page) return []
      const source = this.#program.getSourceFile(name)
      const found = [
        ...this.#program.getSyntacticDiagnostics(source),
        ...this.#program.getSemanticDiagnostics(source),
      ]
      return found.map((diagnostic) => describe(diagnostic, file))
    })
  }

  /** The names of the members of a type that a source exports. */
  membersOf(file: string, type: string): string[] {
    const checker = this.#program.getTypeChecker()
    const module = checker.getSymbolAtLocation(this.#program.getSourceFile(join(ROOT, file))!)!
    const symbol = checker.getExportsOfModule(module).find((one) => one.name === type)
    if (!symbol) throw new Error(`${file} exports no ${type}`)
    return checker
      .getDeclaredTypeOfSymbol(symbol)
      .getProperties()
      .map((property) => property.name)
  }
}

function compilerOptions(): ts.CompilerOptions {
  const path = join(ROOT, 'tsconfig.json')
  const { config } = ts.readConfigFile(path, ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  return {
    ...options,
    noEmit: true,
    declaration: false,
    // As AdonisJS sets them for an application.
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    // An example may declare what it does not use.
    noUnusedLocals: false,
    noUnusedParameters: false,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
    rootDir: undefined,
  }
}

function virtualFiles(page: Page): [string, VirtualFile][] {
  const folder = join(VIRTUAL, page.file.replace(/\.md$/, '').replaceAll('/', '-'))
  const checked = page.blocks.filter(
    ({ language, flags }) => language === 'ts' && !flags.includes('no-check')
  )
  return checked.map((block, index) => {
    const path = /^\/\/ ([\w./-]+\.ts)\n/.exec(block.code)?.[1] ?? `block_${index + 1}.ts`
    const name = join(folder, path)
    const before = preludeImport(name, block)
    const text = `${before}${block.code}\nexport {}\n`
    return [name, { page, block, text, offset: before.split('\n').length - 1 }]
  })
}

/** Imports what the prelude exports and the block does not declare itself. */
function preludeImport(into: string, { prelude, code }: Block): string {
  if (prelude === undefined) return ''
  const file = join(FIXTURES, 'preludes', `${prelude}.ts`)
  const own = new Set(declaredNames(code).map(({ id }) => id))
  const names = declaredNames(readFileSync(file, 'utf8'))
    .filter(({ id, exported }) => exported && !own.has(id))
    .map(({ id, isType }) => (isType ? `type ${id}` : id))
  if (names.length === 0) return ''
  return `import { ${names.join(', ')} } from '${relative(dirname(into), file)}'\n`
}

interface DeclaredName {
  id: string
  isType: boolean
  exported: boolean
}

/** What a module declares or imports at its top level. */
function declaredNames(code: string): DeclaredName[] {
  const source = ts.createSourceFile('block.ts', code, ts.ScriptTarget.Latest)
  return source.statements.flatMap((statement): DeclaredName[] => {
    if (ts.isImportDeclaration(statement)) {
      const clause = statement.importClause
      const bindings = clause?.namedBindings
      const named = bindings && ts.isNamedImports(bindings) ? bindings.elements : []
      const all = [clause?.name, ...named.map((element) => element.name)]
      return all.flatMap((id) => (id ? [{ id: id.text, isType: false, exported: false }] : []))
    }
    const modifiers = ts.canHaveModifiers(statement) ? (ts.getModifiers(statement) ?? []) : []
    const exported = modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    const isType = ts.isTypeAliasDeclaration(statement) || ts.isInterfaceDeclaration(statement)
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations
        .flatMap(({ name }) => boundNames(name))
        .map((id) => ({ id, isType, exported }))
    }
    const { name } = statement as { name?: ts.Node }
    return name && ts.isIdentifier(name) ? [{ id: name.text, isType, exported }] : []
  })
}

function boundNames(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text]
  return name.elements.flatMap((element) =>
    ts.isOmittedExpression(element) ? [] : boundNames(element.name)
  )
}

function hostOver(files: Map<string, VirtualFile>, options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options)
  const { readFile, fileExists } = host
  host.readFile = (name) => files.get(name)?.text ?? readFile.call(host, name)
  host.fileExists = (name) => files.has(name) || fileExists.call(host, name)
  const cache = ts.createModuleResolutionCache(ROOT, (name) => name, options)
  host.resolveModuleNameLiterals = (literals, containing, redirect, given, sourceFile) =>
    literals.map((literal) => {
      const mapped = mappedFile(literal.text, containing, files)
      if (mapped !== undefined) return { resolvedModule: resolved(mapped) }
      const isOurs = literal.text.startsWith(PACKAGE) || literal.text.startsWith('#')
      if (isOurs) return { resolvedModule: undefined }
      const mode = ts.getModeForUsageLocation(sourceFile, literal, given)
      const from = files.has(containing) ? OUTSIDE : containing
      return ts.resolveModuleName(literal.text, from, given, host, cache, redirect, mode)
    })
  return host
}

function resolved(file: string): ts.ResolvedModuleFull {
  return {
    resolvedFileName: file,
    extension: ts.Extension.Ts,
    isExternalLibraryImport: false,
    packageId: undefined,
  }
}

/** The file behind an import that only an application resolves: of the package, of an alias, of a page. */
function mappedFile(
  specifier: string,
  containing: string,
  files: Map<string, VirtualFile>
): string | undefined {
  if (specifier.startsWith(PACKAGE)) return sourceOf(specifier.slice(PACKAGE.length))
  if (!containing.startsWith(VIRTUAL)) return undefined
  const folder = join(VIRTUAL, containing.slice(VIRTUAL.length + 1).split('/')[0])
  if (specifier.startsWith('#')) {
    const path = `${aliased(specifier)}.ts`
    const onPage = join(folder, path)
    if (files.has(onPage)) return onPage
    const fixture = join(FIXTURES, path)
    return existsSync(fixture) ? fixture : undefined
  }
  if (!specifier.startsWith('.')) return undefined
  const target = join(containing, '..', specifier.replace(/\.js$/, '.ts'))
  return files.has(target) || existsSync(target) ? target : undefined
}

/** `#workflows/order` lies in `app/workflows/order`; some folders of an application lie beside `app`. */
function aliased(specifier: string): string {
  const path = specifier.slice(1)
  return /^(config|start|database)\//.test(path) ? path : `app/${path}`
}

/** The source behind a door of the package. */
function sourceOf(subpath: string): string | undefined {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, { types?: string }>
  }
  const types = exports[`.${subpath}`]?.types
  if (types === undefined) return undefined
  return join(ROOT, types.replace('./build/', './').replace(/\.d\.ts$/, '.ts'))
}

function describe(diagnostic: ts.Diagnostic, { page, block, offset, text }: VirtualFile): string {
  const before = text.slice(0, diagnostic.start ?? 0)
  const line = block.line + before.split('\n').length - 1 - offset
  return `${page.file}:${line} ${ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')}`
}
