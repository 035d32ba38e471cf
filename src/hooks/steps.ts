/*
 * The assembler hook that generates the barrel of steps, for `hooks.init` in adonisrc.ts.
 */
import { barrelHook, type BarrelHook, type BarrelHookOptions } from './barrel.ts'

export type { BarrelHook, BarrelHookOptions }

/**
 * Generates `.adonisjs/durable/steps.ts`: `steps`, a map of lazy imports of every module under
 * `source`, default `app/steps`; several directories make one barrel. `source` names the directories of
 * `stepsPath` in config/durable.ts. Modules are imported by `importAlias`, default `#steps`, where
 * package.json maps it to them, otherwise by relative paths. The provider reads the barrel only from its
 * default `output`; one that is written elsewhere is for `registerStepsFromBarrel`.
 *
 * Throws `InvalidArgumentError` for options that are empty.
 */
export function stepsHook(options: BarrelHookOptions = {}): BarrelHook {
  return barrelHook(options, {
    name: 'steps',
    source: 'app/steps',
    importAlias: '#steps',
    output: '.adonisjs/durable/steps.ts',
  })
}

/** The hook with its defaults. */
export default stepsHook()
