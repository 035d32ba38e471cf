/*
 * Every statement of every turn may fail. `npm test` strikes a sample of them; `FAULTS=all` each one in
 * each way, `FAULTS=dropped` each one in that way.
 */
import { test } from '@japa/runner'
import { reachableDialects } from '../../helpers/databases.ts'
import { faultsOf } from './faulty_driver.ts'
import { Site, travel } from './journey.ts'

const { FAULTS: wanted } = process.env
/** Of a sample: primes, so that every way meets other statements. */
const EVERY = { sqlite: 13, postgres: 29, mysql: 29 }

for (const dialect of await reachableDialects()) {
  test.group(`Faults in statements | ${dialect}`, (group) => {
    let site: Site
    let statements = 0
    group.setup(async () => {
      site = await Site.open(dialect)
      return () => site.database.cleanup()
    })

    test('without a fault the run ends, and each body ran once', async ({ assert }) => {
      const outcome = await travel(site)
      assert.deepEqual(outcome.complaints, [])
      assert.deepEqual([...new Set(outcome.executions.values())], [1])
      statements = outcome.statements
      assert.isAbove(statements, 20)
    }).timeout(30_000)

    for (const [offset, fault] of faultsOf(dialect).entries()) {
      if (wanted && wanted !== 'all' && wanted !== fault) continue
      test(`${fault}: nothing is lost, doubled or stuck`, async ({ assert }) => {
        assert.isAbove(statements, 0)
        const complaints: string[] = []
        let struck = 0
        const step = wanted ? 1 : EVERY[dialect]
        for (let k = (offset * 5 + 3) % step; k < statements; k += step) {
          const outcome = await travel(site, { statement: k, fault })
          if (outcome.struck !== undefined) struck += 1
          const text = outcome.struck?.replace(/\s+/g, ' ').slice(0, 120)
          complaints.push(...outcome.complaints.map((what) => `statement ${k} (${text}): ${what}`))
        }
        console.log(`      ${dialect}, ${fault}: ${struck} of ${statements} statements struck`)
        assert.deepEqual(complaints, [])
        assert.isAbove(struck, 0)
      }).timeout(600_000)
    }
  })
}
