import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audienceOf } from '../../src/session/record/record.ts'

test('Sessions of one issuer are not shared by subjects from ID Tokens and from members of an API', () => {
  const provider = { issuer: 'https://id.example.com', client_id: 'orders' }

  const audiences = [
    audienceOf(provider),
    audienceOf({ ...provider, oauth2: { subject: ['id'] } }),
    audienceOf({ ...provider, oauth2: { subject: ['login'] } }),
    audienceOf({ ...provider, oauth2: { subject: ['user', 'id'] } }),
    audienceOf({ ...provider, oauth2: { subject: ['user.id'] } }),
  ]

  assert.equal(new Set(audiences).size, audiences.length)
  assert.equal(audienceOf({ ...provider, oauth2: undefined }), audiences[0])
})
