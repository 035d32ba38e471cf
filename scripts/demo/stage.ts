/*
 * The processes of the shop and the temporary folder they work in. Whatever ends the demo (its end, a
 * failure, Ctrl-C), `close` leaves neither behind.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runToEnd } from './commands.ts'
import { SHOP } from './places.ts'
import type { DemoTransport } from './transport.ts'

const APP_KEY = randomBytes(16).toString('hex')

const TAIL = 3000

export class Stage {
  readonly #dir = mkdtempSync(join(tmpdir(), 'durable-shop-'))
  readonly #processes: ShopProcess[] = []
  readonly #transport: DemoTransport
  #port = 0

  constructor(transport: DemoTransport) {
    this.#transport = transport
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get journalFile(): string {
    return join(this.#dir, 'journal.log')
  }

  async open(): Promise<void> {
    this.#port = await freePort()
  }

  /** Runs an ace command to its end. */
  ace(command: string): Promise<string> {
    const options = { cwd: SHOP, env: this.#env(command) }
    return runToEnd(process.execPath, ['ace.js', command], options)
  }

  startWeb(): ShopProcess {
    return this.#start('web', ['--import=@poppinss/ts-exec', 'bin/server.ts'])
  }

  startWorker(name: string): ShopProcess {
    return this.#start(name, ['ace.js', 'durable:work'])
  }

  /** Throws if a process ended that was not told to. */
  checkAlive(): void {
    const dead = this.#processes.find((one) => one.hasFallen)
    if (dead) throw new Error(`${dead.name} ended by itself, with ${dead.ended}`)
  }

  /** The last lines that every process printed. */
  tails(): string {
    return this.#processes.map((one) => `── ${one.name}\n${one.tail()}`).join('\n')
  }

  /** Synchronous, so that it can be the last act of the process. */
  close(): void {
    for (const one of this.#processes) one.kill()
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }

  #start(name: string, args: string[]): ShopProcess {
    const log = join(this.#dir, `${name.replace(' ', '-')}.log`)
    const one = new ShopProcess(name, args, log, this.#env(name))
    this.#processes.push(one)
    return one
  }

  #env(name: string): NodeJS.ProcessEnv {
    return {
      ...process.env,
      ...this.#transport.env,
      NODE_ENV: 'development',
      HOST: '127.0.0.1',
      PORT: String(this.#port),
      LOG_LEVEL: 'info',
      APP_KEY,
      APP_URL: this.url,
      DB_FILE: join(this.#dir, 'shop.sqlite'),
      JOURNAL_FILE: this.journalFile,
      PROCESS_NAME: name,
      WRAPPING_MS: '3000',
    }
  }
}

export class ShopProcess {
  readonly name: string
  readonly #child: ChildProcess
  readonly #log: string
  readonly #exit: Promise<unknown>
  #wanted = false
  #ended?: string | number

  constructor(name: string, args: string[], log: string, env: NodeJS.ProcessEnv) {
    this.name = name
    this.#log = log
    const output = openSync(log, 'a')
    this.#child = spawn(process.execPath, args, {
      cwd: SHOP,
      env,
      stdio: ['ignore', output, output],
    })
    closeSync(output)
    this.#exit = new Promise<void>((resolve) => {
      const end = (how: string | number) => {
        this.#ended = how
        resolve()
      }
      this.#child.once('error', (error) => end(error.message))
      this.#child.once('exit', (code, signal) => end(signal ?? code ?? 'nothing'))
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** An exit code, a signal, or why it could not begin; undefined while it runs. */
  get ended(): string | number | undefined {
    return this.#ended
  }

  /** It ended, and nobody told it to. */
  get hasFallen(): boolean {
    return this.#ended !== undefined && !this.#wanted
  }

  /** Sends a signal; answers how the process ended. */
  async end(signal: NodeJS.Signals): Promise<string | number | undefined> {
    this.#wanted = true
    this.#child.kill(signal)
    await this.#exit
    return this.#ended
  }

  kill(): void {
    if (this.#ended === undefined) this.#child.kill('SIGKILL')
  }

  tail(): string {
    return readFileSync(this.#log, 'utf8').slice(-TAIL)
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
