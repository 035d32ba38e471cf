/*
 * What the commands about runs share: the gateway, JSON on stdout, exit codes. 1 says that the command was
 * asked for something it cannot do, 2 that the store did not answer.
 */
import { BaseCommand } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { messageOf } from '../foundation/failure.ts'
import type { RunGateway } from '../gateway/main.ts'
import { visible } from '../insight/plain_text.ts'
import { RUN_GATEWAY } from './tokens.ts'

/** Thrown for what the caller of a command got wrong. */
class Refused extends Error {}

export abstract class RunCommand extends BaseCommand {
  static override options: CommandOptions = { startApp: true }

  /** Does the work of the command. */
  protected abstract act(): Promise<void>

  async run(): Promise<void> {
    try {
      const [extra] = this.parsed._
      if (extra !== undefined) {
        this.refuse(`"${visible(String(extra))}" is one argument too many: give one id at a time`)
      }
      await this.act()
    } catch (error) {
      this.exitCode = error instanceof Refused ? 1 : 2
      this.logger.error(error instanceof Refused ? error.message : `durable: ${messageOf(error)}`)
    }
  }

  protected gateway(): Promise<RunGateway> {
    return this.app.container.make(RUN_GATEWAY) as Promise<RunGateway>
  }

  /** Ends the command with exit code 1. */
  protected refuse(message: string): never {
    throw new Refused(message)
  }

  /** The gateway cannot do it; says what stands in the way. */
  protected tooOld(verb: string): never {
    return this.refuse(`this process reaches runs by way of one that is too old to ${verb}`)
  }

  /** Beside the output: on stderr, so that it can be read by a program. */
  protected note(message: string): void {
    this.logger.logError(this.logger.prepareWarning(visible(message)))
  }

  protected print(text: string): void {
    this.logger.log(text)
  }

  protected printJson(value: unknown): void {
    this.logger.log(JSON.stringify(value, undefined, 2))
  }

  /** One of a list; refuses anything else, with the list. */
  protected oneOf<T extends string>(flag: string, value: string, allowed: readonly T[]): T {
    const found = allowed.find((one) => one === value)
    if (found === undefined) {
      this.refuse(`--${flag}=${visible(value)} is unknown: use ${allowed.join(', ')}`)
    }
    return found
  }

  protected count(flag: string, value: number | undefined, most: number): number | undefined {
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1 && value <= most)) {
      return value
    }
    return this.refuse(`--${flag} must be a whole number from 1 to ${most}`)
  }
}
