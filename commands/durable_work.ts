/*
 * `node ace durable:work`: the worker loop as a process of its own. The loop belongs to the store role,
 * which also stops it when the application is terminated by somebody else; whoever comes first, the engine
 * drains once.
 */
import { BaseCommand, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { STORE_ROLE } from '../src/adonis/tokens.ts'
import { deferred } from '../src/foundation/deferred.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export default class DurableWork extends BaseCommand {
  static commandName = 'durable:work'
  static description = 'Execute durable workflow runs until the process is told to stop'
  static help = [
    'Picks up pending runs, runs left behind by a crash and due timers, and serves the steps of the',
    'application. Run as many of these processes as you like: leases decide who executes what.',
    '',
    'SIGINT and SIGTERM stop the loop and wait for the turns in flight; a second signal exits at once',
    'with code 1, and other processes take over when the leases lapse.',
    '',
    'Examples:',
    '```',
    '{{ binaryName }} durable:work',
    '{{ binaryName }} durable:work --interval=250 --drain-timeout=30000',
    '```',
  ]
  static options: CommandOptions = { startApp: true, staysAlive: true }

  @flags.number({ description: 'Pause between two ticks in ms; default 1000, or as configured' })
  declare interval?: number

  @flags.number({
    description: 'Longest wait for turns in flight in ms; default 10000, or as configured',
  })
  declare drainTimeout?: number

  readonly #stop = deferred<void>()

  /** Stops the loop as a signal does. */
  stop(): void {
    this.#stop.resolve()
  }

  async run(): Promise<void> {
    const release = this.#listenToSignals()
    try {
      await this.#work()
    } catch (error) {
      this.exitCode = 1
      this.logger.fatal(error as Error)
    } finally {
      release()
      await this.terminate()
    }
  }

  async #work(): Promise<void> {
    const [extra] = this.parsed._
    if (extra !== undefined) {
      this.logger.error(`durable:work takes no arguments, got "${extra}"`)
      this.exitCode = 1
      return
    }
    if (!this.#checkFlag('interval', 1) || !this.#checkFlag('drain-timeout', 0)) return
    const role = await this.app.container.make(STORE_ROLE)
    const settings = {
      intervalMs: this.interval ?? role.loopSettings.intervalMs,
      drainTimeoutMs: this.drainTimeout ?? role.loopSettings.drainTimeoutMs,
    }
    if (role.isPrivate) {
      this.logger.warning(
        'durable: runs are kept in memory, so this process sees none of other processes. ' +
          'Choose a store in config/durable.ts'
      )
    }
    this.logger.info(`durable:work started (interval ${settings.intervalMs}ms)`)
    const stopSignal = this.#stop.promise
    const ticks = await role.work({ ...settings, stopSignal, logger: this.logger })
    this.logger.info(`durable:work stopped after ${ticks} ${ticks === 1 ? 'tick' : 'ticks'}`)
  }

  #checkFlag(name: 'interval' | 'drain-timeout', least: number): boolean {
    const value = name === 'interval' ? this.interval : this.drainTimeout
    if (value === undefined || (Number.isFinite(value) && value >= least)) return true
    this.logger.error(`--${name} must be a number of milliseconds of at least ${least}`)
    this.exitCode = 1
    return false
  }

  #listenToSignals(): () => void {
    let signals = 0
    const onSignal = (signal: NodeJS.Signals) => {
      signals++
      if (signals > 1) process.exit(1)
      this.logger.info(`durable:work received ${signal}: finishing the turns in flight`)
      this.stop()
    }
    for (const signal of SIGNALS) process.on(signal, onSignal)
    return () => {
      for (const signal of SIGNALS) process.off(signal, onSignal)
    }
  }
}
