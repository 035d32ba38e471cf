/*
 * The assembler hook that generates the barrel of workflows, for `hooks.init` in adonisrc.ts.
 */
import { barrelHook, type BarrelHook, type BarrelHookOptions } from './barrel.ts'

export type { BarrelHook, BarrelHookOptions }

/**
 * Generates `.adonisjs/durable/workflows.ts`: `workflows`, a map of lazy imports of every module under
 * `source`, default `app/workflows`; several directories make one barrel. `source` names the directories of
 * `workflowsPath` in config/durable.ts. Modules are imported by `importAlias`, default `#workflows`, where
 * package.json maps it to them, otherwise by relative paths. The provider reads the barrel only from its
 * default `output`; one that is written elsewhere is for `registerWorkflowsFromBarrel`.
 *
 * Throws `InvalidArgumentError` for options that are empty.
 */
export function workflowsHook(options: BarrelHookOptions = {}): BarrelHook {
  return barrelHook(options, {
    name: 'workflows',
    source: 'app/workflows',
    importAlias: '#workflows',
    output: '.adonisjs/durable/workflows.ts',
  })
}

/** The hook with its defaults. */
export default workflowsHook()
