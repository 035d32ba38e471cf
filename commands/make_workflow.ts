/*
 * `node ace make:workflow`: a new workflow class under app/workflows.
 */
import { args, BaseCommand, flags } from '@adonisjs/core/ace'
import stringHelpers from '@adonisjs/core/helpers/string'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { stubsRoot } from '../stubs/main.ts'

export default class MakeWorkflow extends BaseCommand {
  static commandName = 'make:workflow'
  static description = 'Create a new durable workflow class in app/workflows'
  static help = [
    'The name may be nested; a "workflow" suffix is optional:',
    '```',
    '{{ binaryName }} make:workflow order',
    '{{ binaryName }} make:workflow billing/charge',
    `{{ binaryName }} make:workflow report --schedule='0 6 * * 1'`,
    '```',
  ]
  static options: CommandOptions = { allowUnknownFlags: true }

  @args.string({ description: 'Name of the workflow' })
  declare name: string

  @flags.string({ description: 'Directory of the class, if not app/workflows' })
  declare dir?: string

  @flags.string({ description: 'Cron pattern: start the workflow by the clock (UTC)' })
  declare schedule?: string

  @flags.string({ description: 'Use the contents of the given file as the generated output' })
  declare contentsFrom?: string

  @flags.boolean({ description: 'Overwrite an existing file', alias: 'f' })
  declare force?: boolean

  async run(): Promise<void> {
    const entity = this.app.generators.createEntity(this.name)
    const base = stringHelpers.create(entity.name).removeExtension().removeSuffix('workflow')
    const name = base.snakeCase().toString()
    if (!/^[a-z]/.test(name)) {
      this.logger.error(`"${this.name}" is no name for a workflow class: begin it with a letter`)
      this.exitCode = 1
      return
    }
    const [extra] = this.parsed._
    if (extra !== undefined) {
      this.logger.error(`make:workflow makes one workflow: "${extra}" is one name too many`)
      this.exitCode = 1
      return
    }
    const { schedule } = this
    if (schedule !== undefined && !isPattern(schedule.trim())) {
      this.logger.error(`--schedule="${schedule}" is no cron pattern, such as '0 6 * * 1'`)
      this.exitCode = 1
      return
    }
    const pascal = stringHelpers.pascalCase(name)
    const codemods = await this.createCodemods()
    codemods.overwriteExisting = this.force === true
    const state = {
      flags: this.parsed.flags,
      workflow: {
        name,
        className: `${pascal}Workflow`,
        inputName: `${pascal}Input`,
        directory: this.dir ?? 'app/workflows',
        schedule: schedule?.trim(),
        path: entity.path,
        fileName: `${name}_workflow.ts`,
      },
    }
    await codemods.makeUsingStub(stubsRoot, 'make/workflow/main.stub', state, {
      contentsFromFile: this.contentsFrom,
    })
  }
}

/** Five fields, or six with seconds first. */
const isPattern = (text: string): boolean => /^[\w*/,\-#?]+(\s+[\w*/,\-#?]+){4,5}$/.test(text)
