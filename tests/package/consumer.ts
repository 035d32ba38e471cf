/*
 * A project that uses the package: one of `fixtures/consumers`, in a folder of its own below `tests/tmp`,
 * with the package in its `node_modules` as its tarball holds it. Everything else it needs it finds in the
 * `node_modules` of the repository.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '../..')
const CONSUMERS = join(import.meta.dirname, 'fixtures/consumers')
const PROJECT = join(ROOT, 'tests/tmp')
const exec = promisify(execFile)

/** What a command printed, and the code with which it ended. */
export interface Ended {
  code: number
  output: string
}

export class Consumer {
  readonly root: string

  private constructor(root: string) {
    this.root = root
  }

  /** Packs the build, unpacks it and puts the project around it. */
  static async create(name: string): Promise<Consumer> {
    await mkdir(PROJECT, { recursive: true })
    const root = await mkdtemp(join(PROJECT, `consumer-${name}-`))
    await cp(join(CONSUMERS, 'shared'), root, { recursive: true })
    await cp(join(CONSUMERS, name), root, { recursive: true })
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', root]
    const { stdout } = await exec('npm', pack, { cwd: ROOT })
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
    const installed = join(root, 'node_modules/@adonis-agora/durable')
    await mkdir(installed, { recursive: true })
    const unpack = ['-xzf', filename, '--strip-components=1', '-C', installed]
    await exec('tar', unpack, { cwd: root })
    return new Consumer(root)
  }

  async write(path: string, contents: string): Promise<void> {
    await mkdir(dirname(join(this.root, path)), { recursive: true })
    await writeFile(join(this.root, path), contents)
  }

  /** Runs `node …` to its end. */
  async node(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
    const options = {
      cwd: this.root,
      // Not those of the run that this one is part of.
      env: {
        ...process.env,
        NODE_TEST_CONTEXT: undefined,
        NODE_OPTIONS: '',
        NO_COLOR: '1',
        FORCE_COLOR: '0',
        ...env,
      },
      maxBuffer: 64 * 1024 * 1024,
    }
    try {
      const { stdout, stderr } = await exec(process.execPath, args, options)
      return { code: 0, output: stdout + stderr }
    } catch (error) {
      const { code, stdout = '', stderr = '' } = error as Ended & Record<string, string>
      return { code: typeof code === 'number' ? code : 1, output: stdout + stderr }
    }
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true })
  }
}
