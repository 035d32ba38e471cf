/*
 * The package that a file belongs to.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { OriginFinder } from '../../src/authoring/origin.ts'
import { tree } from './tree.ts'

test.group('Origin', () => {
  test('is the name in the nearest manifest that has one', async ({ assert }) => {
    const root = await tree({
      'package.json': '{ "name": "root" }',
      'malformed/package.json': '{ "name": ',
      'malformed/x.ts': '',
      'null/package.json': 'null',
      'number/package.json': '{ "name": 7 }',
      'empty/package.json': '{ "name": "" }',
      'folder/package.json/x.ts': '',
      'inner/package.json': '{ "name": "@acme/inner" }',
      'inner/a/b/c.ts': '',
    })
    const origins = new OriginFinder()
    for (const directory of ['malformed', 'null', 'number', 'empty', 'folder', 'missing/deep']) {
      assert.equal(await origins.ofFile(join(root, directory, 'x.ts')), 'root', directory)
    }
    assert.equal(await origins.ofFile(join(root, 'inner/a/b/c.ts')), '@acme/inner')
    assert.equal(await origins.ofFile(join(root, 'inner/package.json')), '@acme/inner')
  })

  test('reads a directory once', async ({ assert }) => {
    const root = await tree({ 'package.json': '{ "name": "root" }' })
    const origins = new OriginFinder()
    assert.equal(await origins.ofFile(join(root, 'x.ts')), 'root')
    await rm(join(root, 'package.json'))
    assert.equal(await origins.ofFile(join(root, 'y.ts')), 'root')
    assert.notEqual(await new OriginFinder().ofFile(join(root, 'x.ts')), 'root')
  })

  test('is unknown where no manifest is', async ({ assert }) => {
    assert.isUndefined(await new OriginFinder().ofFile('/there/is/no/such/place.ts'))
  })
})
