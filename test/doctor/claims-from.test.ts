import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiFinding, claimSourceFinding } from '../../packages/doctor/provider.ts'
import { examineApis, examineClaimSources } from '../../src/provider/examine.ts'
import { linked, startApi } from '../support/claims-apis.ts'
import { bearer, paths, sendJson, startSigningProvider } from '../support/signing-provider.ts'
import { assertUseful, configOf } from './support.ts'

for (const [what, entry, level, says] of [
  ['that has the values', '/groups", token: client_credentials', 'ok', /responds with values for groups/],
  ['that needs the token of a person', '/groups"', 'ok', /responds with status 200 without a token.*by a sign-in only/],
  ['that is not at this address', '/nowhere"', 'warning', /responds with status 404 without a token/],
  ['at a port where nothing listens', ':1/groups"', 'fault', /cannot be read: .*(?:ECONNREFUSED|bad port)/],
  ['of one person', '/users/{sub}/groups", token: client_credentials', 'ok', /by a sign-in only/],
  [
    'that refuses the client',
    '/refused", token: client_credentials',
    'fault',
    /cannot be read: the API responded with status 403/,
  ],
] as const)
  test(`the finding about an API ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.token, (_req, res) => sendJson(res, bearer()))
    const api = await startApi(t, (req, res, url) =>
      url.pathname === '/refused' || url.pathname === '/nowhere'
        ? res.writeHead(url.pathname === '/refused' ? 403 : 404).end()
        : linked([{ id: 'staff' }])(req, res, url),
    )
    const claimsFrom = `claims_from: [{ url: "${entry.startsWith(':') ? 'http://127.0.0.1' : api.origin}${entry}, select: "[].id", as: groups }]`
    const { providers } = configOf(t, { issuer: provider.issuer, provider: claimsFrom })

    const findings = (await examineApis(providers[0])).map(apiFinding)

    assertUseful(findings)
    assert.deepEqual(
      findings.map((finding) => finding.level),
      [level],
    )
    assert.match(findings[0]?.what ?? '', says)
  })

for (const [what, path, level, says] of [
  ['that can be read', '/jwks', 'ok', /the keys of https:\/\/bank\.example\.com can be read/],
  ['that are away', '/elsewhere', 'fault', /cannot be read: .*\/elsewhere returned status 404/],
] as const)
  test(`the finding about keys of another issuer ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    const entry = `{ issuer: "https://bank.example.com", jwks_uri: "${provider.issuer}${path}" }`
    const { providers } = configOf(t, { issuer: provider.issuer, provider: `claim_sources: [${entry}]` })

    const [finding, ...more] = (await examineClaimSources(providers[0])).map(claimSourceFinding)

    assert.ok(finding)
    assertUseful([finding])
    assert.deepEqual([finding.level, more], [level, []])
    assert.match(finding.what, says)
  })
