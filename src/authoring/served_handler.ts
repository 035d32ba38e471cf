/*
 * The boundary at which a step is served: its schemas are enforced here, around the handler, in whatever
 * process runs it.
 */
import type { StepHandler, StepLogger, StepSchemas } from '../types/step.ts'
import { runOutsideWorkflow } from './ambient.ts'
import { validateStandard } from './validate_standard.ts'

/**
 * The handler to give to a `StepServer`. `run` receives the output of the input schema, the caller that
 * of the output schema. Throws `SchemaValidationError`, never retried, with code `invalid_input` before
 * `run` is called or `invalid_output` after it. No workflow is ambient in `run`, wherever it is served.
 */
export function servedHandler(
  name: string,
  run: (input: never, log: StepLogger) => unknown,
  schemas: StepSchemas = {}
): StepHandler {
  const handle = run as StepHandler
  return (input, log) =>
    runOutsideWorkflow(async () => {
      const given = schemas.input
        ? await validateStandard(
            schemas.input,
            input,
            `the input of step "${name}"`,
            'invalid_input'
          )
        : input
      const output = await handle(given, log)
      return schemas.output
        ? validateStandard(schemas.output, output, `the output of step "${name}"`, 'invalid_output')
        : output
    })
}
