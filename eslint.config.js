import { configPkg } from '@adonisjs/eslint-config'

const TYPES_OF_THE_AUTHORING_API = 'src/types/ctx.ts'

/** Only `src/foundation` knows the time and the dice: everything else is handed a clock or an id. */
const nondeterminism = [
  { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', what: 'new Date()' },
  { selector: 'CallExpression[callee.name="Date"]', what: 'Date()' },
  {
    selector: 'MemberExpression[object.name="Date"][property.name="now"]',
    what: 'Date.now',
  },
  {
    selector: 'MemberExpression[object.name="Math"][property.name="random"]',
    what: 'Math.random',
  },
].map(({ selector, what }) => ({
  selector,
  message: `${what} belongs to src/foundation; take a Clock or an id from there.`,
}))

export default configPkg(
  {
    ignores: [
      'build/**',
      'coverage/**',
      'tmp/**',
      'tests/tmp/**',
      'examples/*/.adonisjs/**',
      'dashboard/**',
    ],
  },
  {
    // `import { type A }` would leave a bare import behind; `import type` leaves nothing.
    files: ['**/*.ts'],
    rules: { '@typescript-eslint/no-import-type-side-effects': 'error' },
  },
  {
    files: ['src/**/*.ts'],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      'max-lines': ['error', { max: 400 }],
      'no-console': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/foundation/**'],
    rules: { 'no-restricted-syntax': ['error', ...nondeterminism] },
  },
  { files: [TYPES_OF_THE_AUTHORING_API], rules: { 'max-lines': ['error', { max: 500 }] } },
  { files: ['tests/**/*.ts'], rules: { 'max-lines': ['error', { max: 500 }] } },
  // A list of names.
  { files: ['tests/api/reference.ts'], rules: { 'max-lines': ['error', { max: 700 }] } }
)
