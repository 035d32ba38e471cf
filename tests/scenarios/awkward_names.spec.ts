/*
 * Ids, tags, tokens, attributes, keys and names that a query, a pattern, a path or a column could trip
 * over: what goes in is found again, and nothing else is.
 */
import { test } from '@japa/runner'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const bytes = (text: string, length: number) =>
  text + 'x'.repeat(length - Buffer.byteLength(text, 'utf8'))

const AWKWARD = {
  'single quotes': "o'brien's '' '",
  'double quotes': '"quoted" ["a","b"]',
  'percent signs and underscores': '100%_%_off%',
  'backslashes': String.raw`\\server\share\n\'`,
  'an emoji': '🧾🏳️‍🌈 order',
  'blanks at the ends': ' a b  ',
  'a different case': 'ABCdef',
  'accents that fold': 'é ß ı İ',
  '255 bytes': bytes('long ✓ ', 255),
  'a question mark and a colon': 'a?b:c??d',
  'markup and a comment': '<b>--</b>; DROP /* x */ #',
  'digits only': '0012345',
}
/** Each differs from its neighbour by what a careless comparison ignores. */
const twin: Record<string, string> = {
  'percent signs and underscores': '100xxxxxoffx',
  'blanks at the ends': ' a b ',
  'a different case': 'abcDEF',
  'accents that fold': 'e ss i I',
  'digits only': '12345',
}

for (const kind of await storesUnderTest()) {
  test.group(`Awkward names | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    for (const [what, name] of Object.entries(AWKWARD)) {
      test(`${what}: found again, and nothing else is`, async ({ assert }) => {
        const engine = world.engine()
        const short = Buffer.from(name).subarray(0, 200).toString('utf8').replace(/�+$/, '')
        engine.register('child', '1', async (_, input) => input)
        engine.register('w', '1', async (ctx, input: string) => {
          await ctx.upsertSearchAttributes({ [short]: name })
          const step = await ctx.localStep(short, () => name)
          const child = await ctx.child('child', name)
          const signal = await ctx.waitForSignal(short)
          await ctx.setEvent(short, name)
          return { input, step, child, signal }
        })
        engine.register('twin', '1', (ctx) => ctx.waitForSignal(twin[what] ?? 'twin'))
        const other = twin[what]
        if (other !== undefined) await engine.start('twin', null, other, { tags: [other] })
        await engine.start('w', name, short, { tags: [name] })
        await world.parked(short)

        const tagged = await engine.listRuns({ tag: name })
        assert.deepEqual(
          tagged.map(({ id }) => id),
          [short]
        )
        const attributes = [{ key: short, op: 'eq' as const, value: name }]
        assert.equal(await engine.countRuns({ attributes }), 1)
        assert.equal(
          await engine.countRuns({ idPrefix: [...short].slice(0, 3).join(''), workflow: 'w' }),
          1
        )
        const facets = await engine.runValueFacets('tag', {})
        assert.includeDeepMembers(facets, [{ value: name, count: 1 }])

        await engine.signal(short, name)
        assert.deepEqual(await world.output(short), {
          input: name,
          step: name,
          child: name,
          signal: name,
        })
        assert.equal(await engine.getEvent(short, short), name)
        if (other !== undefined) assert.equal(await world.status(other), 'suspended')
        assert.equal(await engine.deleteRun(short), 2)
        if (other !== undefined) assert.equal(await world.status(other), 'suspended')
      }).tags(['@scenario-10'])
    }
  })
}
