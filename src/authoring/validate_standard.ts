/*
 * The check behind every schema slot of the package: runs any Standard Schema and turns its issues into
 * a `SchemaValidationError`.
 */
import { InvalidArgumentError, SchemaValidationError, type SchemaErrorCode } from '../errors.ts'
import {
  checkStandard,
  isStandardSchema,
  type InferOutput,
  type StandardSchemaV1,
} from '../foundation/standard_schema.ts'

/**
 * Validates `value` and answers the schema's output, which may differ from the value (defaults,
 * transforms). Schemas may validate asynchronously. `label` says in the message what was validated.
 * Throws `SchemaValidationError` with `code` (default `schema_validation`) when the value is invalid;
 * what the schema itself throws is passed on.
 */
export async function validateStandard<S extends StandardSchemaV1>(
  schema: S,
  value: unknown,
  label: string,
  code?: SchemaErrorCode
): Promise<InferOutput<S>> {
  const verdict = await checkStandard(schema, value)
  if (!verdict.ok) throw new SchemaValidationError(label, verdict.issues, code)
  return verdict.value
}

/** The schema, or nothing when none is declared. Throws `InvalidArgumentError` for anything else. */
export function requireStandardSchema(value: unknown, what: string): StandardSchemaV1 | undefined {
  if (value === undefined || isStandardSchema(value)) return value
  throw new InvalidArgumentError(
    what,
    'is not a Standard Schema: use a schema of zod (3.24 or newer), valibot, arktype or any other ' +
      'library that implements it'
  )
}
