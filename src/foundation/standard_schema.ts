/*
 * Standard Schema V1: the shape every schema library shares. Types only, plus the one call that runs a
 * schema and flattens its issues.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'

export type { StandardSchemaV1 }
export type InferInput<S extends StandardSchemaV1> = StandardSchemaV1.InferInput<S>
export type InferOutput<S extends StandardSchemaV1> = StandardSchemaV1.InferOutput<S>

/** One thing wrong with a value. */
export interface SchemaIssue {
  message: string
  path: string[]
}

export type SchemaVerdict<T> = { ok: true; value: T } | { ok: false; issues: SchemaIssue[] }

/** True for anything that implements Standard Schema V1. */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  const standard = (value as { '~standard'?: { validate?: unknown } } | null | undefined)?.[
    '~standard'
  ]
  return typeof standard?.validate === 'function'
}

/** Runs a schema; may be asynchronous. */
export async function checkStandard<S extends StandardSchemaV1>(
  schema: S,
  value: unknown
): Promise<SchemaVerdict<InferOutput<S>>> {
  return verdict<S>(await schema['~standard'].validate(value))
}

/** Runs a schema that must answer synchronously; undefined when it did not. */
export function checkStandardSync<S extends StandardSchemaV1>(
  schema: S,
  value: unknown
): SchemaVerdict<InferOutput<S>> | undefined {
  const result = schema['~standard'].validate(value)
  if (result instanceof Promise) {
    result.catch(() => {})
    return undefined
  }
  return verdict<S>(result)
}

function verdict<S extends StandardSchemaV1>(
  result: StandardSchemaV1.Result<unknown>
): SchemaVerdict<InferOutput<S>> {
  if (!result.issues) return { ok: true, value: result.value as InferOutput<S> }
  return {
    ok: false,
    issues: result.issues.map((issue) => ({
      message: issue.message,
      path: (issue.path ?? []).map((segment) =>
        String(typeof segment === 'object' ? segment.key : segment)
      ),
    })),
  }
}
