import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emailEndedSince, rememberEmailEnding } from '../../src/session/people/email-endings.ts'
import { audience, gatewayParts } from '../upgrade/formats.ts'

for (const by of ['signal', 'administrator'] as const)
  test(`Version 0.1.0 reads an ending by e-mail address as a number, when it comes from: ${by}`, async () => {
    const { store } = gatewayParts()
    const { latest } = await store.time()
    const documents: string[] = []
    const writeDocument = store.writeDocument.bind(store)
    store.writeDocument = (name, document, ttl) => {
      documents.push(Buffer.from(document.sealed).toString())
      return writeDocument(name, document, ttl)
    }

    await rememberEmailEnding('jane@example.com', audience, by, store)

    const [written] = documents.map(Number)
    assert.ok(written !== undefined && latest <= written, String(documents))
    assert.equal(await emailEndedSince('jane@example.com', audience, latest, store), by)
    assert.equal(await emailEndedSince('jane@example.com', audience, written + 1, store), undefined)
  })
