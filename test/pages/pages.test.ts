import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { page } from '../../src/pages/page.ts'
import { refusal } from '../../src/pages/refusal.ts'
import { signedOutPage, signInErrorPage, signOutConfirmationPage } from '../../src/pages/sign-pages.ts'

const hostile = `"><script>alert('x')</script>&`
const escaped = '&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;'

test('whatever stands on a page is escaped', () => {
  const { body } = page(200, {
    title: hostile,
    text: hostile,
    link: { href: hostile, text: hostile },
    form: { action: hostile, button: hostile },
    requestId: hostile,
  })

  assert.equal(body.includes('<script'), false)
  assert.equal(body.split(escaped).length - 1, 8)
})

test('a page allows its own style and nothing else', () => {
  const { headers, body } = page(200, { title: 'A', text: 'b' })

  const style = /<style>([^]*)<\/style>/.exec(body)?.[1] ?? ''
  const hash = createHash('sha256').update(style).digest('base64')
  assert.equal(
    headers['Content-Security-Policy'],
    `default-src 'none'; style-src 'sha256-${hash}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
  )
})

for (const asPage of [true, false]) {
  test(`a refusal ${asPage ? 'as a page' : 'as a problem document'} is not stored and says nothing to other sites`, () => {
    const { status, headers } = refusal('ERR_FORBIDDEN', { asPage })

    assert.equal(status, 403)
    assert.equal(headers['Cache-Control'], 'no-store')
    assert.equal(headers['X-Content-Type-Options'], 'nosniff')
    assert.equal(headers['Referrer-Policy'], 'no-referrer')
  })
}

test('a refusal is a problem document for whoever is not a page load', () => {
  const { headers, body } = refusal('ERR_UNAUTHENTICATED', {
    asPage: false,
    signIn: 'https://app.example.com/.gatehouse/sign-in',
    requestId: 'r-1',
  })

  assert.equal(headers['Content-Type'], 'application/problem+json')
  assert.deepEqual(JSON.parse(body), {
    type: 'about:blank',
    title: 'Unauthorized',
    status: 401,
    detail: 'Please sign in.',
    sign_in: 'https://app.example.com/.gatehouse/sign-in',
    request_id: 'r-1',
  })
})

test('a 401 has a challenge that opens no password dialogue', () => {
  for (const asPage of [true, false]) {
    const challenge = refusal('ERR_UNAUTHENTICATED', { asPage }).headers['WWW-Authenticate']
    assert.match(String(challenge), /^Gatehouse realm="/)
  }
})

test('a 503 says when to try again', () => {
  assert.equal(refusal('ERR_STORE_UNAVAILABLE', { asPage: true }).headers['Retry-After'], '5')
  assert.equal(refusal('ERR_UPSTREAM_BUSY', { asPage: false }).headers['Retry-After'], '5')
  assert.equal(signInErrorPage('ERR_PROVIDER_UNAVAILABLE', { startAgain: '/' }).headers['Retry-After'], '5')
})

test('several cookies go out with a refusal', () => {
  const { headers } = refusal('ERR_NO_ROUTE', { asPage: true, setCookies: ['a=1', 'b=2'], headers: { Allow: 'GET' } })

  assert.deepEqual(headers['Set-Cookie'], ['a=1', 'b=2'])
  assert.equal(headers['Allow'], 'GET')
})

test('the page after signing out starts no new sign-in by itself', () => {
  const { status, headers, body } = signedOutPage({ signIn: '/.gatehouse/sign-in?return_to=%2F' })

  assert.equal(status, 200)
  assert.match(body, /<a href="\/\.gatehouse\/sign-in\?return_to=%2F">/)
  assert.doesNotMatch(body, /http-equiv|<script|<img|<iframe/)
  assert.equal(headers['Location'], undefined)
  assert.equal(headers['Refresh'], undefined)
})

test('the sign-out form may be answered with a redirect to the provider, and is sent with its origin', () => {
  const { headers, body } = signOutConfirmationPage({
    action: '/.gatehouse/sign-out',
    goesOnTo: ['https://id.example.com'],
  })

  assert.match(body, /<form method="post" action="\/\.gatehouse\/sign-out">/)
  assert.match(String(headers['Content-Security-Policy']), /form-action 'self' https:\/\/id\.example\.com;/)
  assert.equal(headers['Referrer-Policy'], 'same-origin')
})

test('a failed sign-in says what may be told and offers to start again', () => {
  const { status, body } = signInErrorPage('ERR_SIGN_IN_EXPIRED', { startAgain: '/.gatehouse/sign-in' })

  assert.equal(status, 400)
  assert.match(body, /Your sign-in could not be completed/)
  assert.match(body, /<a href="\/\.gatehouse\/sign-in">Start again<\/a>/)
})
