import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { parsePageTemplate } from '../../src/config/build/page-template.ts'
import { type Language, languages } from '../../src/config/model/pages.ts'
import { pageNames, placeholdersOf, type PageName } from '../../src/core/page-names.ts'
import type { Response } from '../../src/http/response.ts'
import type { Pages, RefusalOptions } from '../../src/pages/pages.ts'
import { problem } from '../../src/pages/problem.ts'
import { pagesWith, plainPages } from '../support/pages.ts'

const visit = { requestId: 'r-1', acceptLanguage: undefined }
const asPage: RefusalOptions = { ...visit, asPage: true }

const hostile = `"><script>alert('x')</script>&`
const escaped = '&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;'

/** Each of the pages, as a visitor of this language gets it. */
function eachPage(pages: Pages, acceptLanguage?: string): Readonly<Record<PageName, Response>> {
  const options = { ...asPage, acceptLanguage, returnTo: '/orders?month=may' }
  return {
    'bad-request': pages.refusal('ERR_REQUEST_MALFORMED', options),
    'sign-in-required': pages.refusal('ERR_UNAUTHENTICATED', options),
    'wrong-address': pages.refusal('ERR_WRONG_HOST', { ...options, rightAddress: 'https://orders.example.com/a' }),
    forbidden: pages.refusal('ERR_FORBIDDEN', options),
    'not-found': pages.refusal('ERR_NO_ROUTE', options),
    'too-many-requests': pages.refusal('ERR_TOO_MANY_REQUESTS', options),
    unavailable: pages.refusal('ERR_STORE_UNAVAILABLE', options),
    'sign-in-failed': pages.refusal('ERR_SIGN_IN_REFUSED', options),
    'sign-out': pages.signOut(
      'asked_elsewhere',
      { prefix: '/.gatehouse/', formTargets: ['https://id.example.com'] },
      options,
    ),
    'signed-out': pages.signedOut(options),
  }
}

test('Pages escape all texts of the operator and of the client', () => {
  const pages = pagesWith({ name: hostile, logo: hostile, support: { text: hostile, url: hostile } })

  for (const { body } of Object.values(eachPage(pages))) {
    assert.equal(body.includes('<script'), false)
    assert.ok(body.split(escaped).length > 4)
  }
  const { body } = pages.refusal('ERR_FORBIDDEN', { ...asPage, requestId: hostile, returnTo: hostile })
  assert.equal(body.includes('<script'), false)
  assert.match(body, /return_to=%22%3E%3Cscript%3E/)
})

test('The page about a kept request escapes its address, and the application may redirect anywhere', () => {
  for (const acceptLanguage of languages) {
    const to = new URL('https://orders.example.com/a"><script>?q="><script>$&')
    const mark = { 'a"b': hostile }
    const decline = '/.gatehouse/kept-request'
    const content = { reference: 'abcdefgh', decline, to, kind: 'form', bytes: 1_500_000, mark } as const
    const { body, headers } = pagesWith().kept(content, { ...visit, acceptLanguage })

    assert.equal(body.includes('<script'), false)
    assert.match(body, /orders\.example\.com\/a%22%3E%3Cscript%3E/)
    assert.match(body, /1[.,]5/)
    assert.equal(body.match(/<form method="post"/g)?.length, 2)
    assert.match(String(headers['Content-Security-Policy']), /; form-action 'self' \*; frame-ancestors 'none';/)
  }
})

test('The pages with keys and passwords escape all texts, are kept by no cache, and are shown in no frame', () => {
  const pages = pagesWith()
  const used = { at: 0, address: hostile }
  const key = { token: hostile, name: hostile, upstream: hostile, madeAt: 0, endsAt: 0, used }
  const upstreams = [{ name: hostile, address: hostile }]
  const keys = { keys: [key, key], allToken: hostile, newToken: hostile, upstreams, full: [hostile] }
  const secrets = [{ upstream: hostile, title: hostile, person: hostile }]
  const list = { sessions: [], othersToken: hostile, hasMore: false }
  const asked = { title: hostile, action: hostile, fields: { a: hostile }, username: hostile, sessions: hostile }
  const made = { id: hostile, name: hostile, address: hostile, header: hostile, endsAt: 0 }
  for (const acceptLanguage of languages) {
    const context = { ...visit, acceptLanguage }
    for (const { body, headers } of [
      pages.sessions(list, { prefix: '/.gatehouse/', formTargets: [], keys, secrets }, context),
      pages.keyMade(made, '/.gatehouse/', context),
      pages.applicationSignIn({ ...asked, wasRefused: true, rememberMs: 1 }, context),
    ]) {
      assert.equal(body.includes('<script'), false)
      assert.ok(body.split(escaped).length > 3)
      assert.equal(headers['Cache-Control'], 'no-store')
      assert.match(String(headers['Content-Security-Policy']), /default-src 'none'; .*frame-ancestors 'none'/)
    }
  }
})

test('Values in a template are escaped', () => {
  const template = (page: PageName) =>
    parsePageTemplate(
      placeholdersOf(page)
        .map((name) => `<p title="{{${name}}}">{{ ${name} }}</p>`)
        .join(''),
      placeholdersOf(page),
    ).template
  const templates = Object.fromEntries(pageNames.map((page) => [page, template(page)]))
  const pages = pagesWith({ name: hostile, logo: hostile, support: { text: hostile, url: hostile }, templates })

  for (const { body } of Object.values(eachPage(pages))) {
    assert.equal(body.includes('<script'), false)
    assert.equal(body.split(escaped).length - 1, 8)
    assert.doesNotMatch(body, /[{}]/)
  }
})

test('The Content Security Policy of a page allows its own style and nothing else', () => {
  const { headers, body } = pagesWith().refusal('ERR_FORBIDDEN', asPage)

  const style = /<style>([^]*)<\/style>/.exec(body)?.[1] ?? ''
  const hash = createHash('sha256').update(style).digest('base64')
  assert.equal(
    headers['Content-Security-Policy'],
    `default-src 'none'; style-src 'sha256-${hash}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
  )
})

test('The Content Security Policy of the page after a sign-in in a window allows its one script', () => {
  const { headers, body } = pagesWith().signedInAgain(visit)

  const [style = '', script = ''] = ['style', 'script'].map((name) => {
    const [, source = ''] = new RegExp(`<${name}>([^]*)</${name}>`).exec(body) ?? []
    return createHash('sha256').update(source).digest('base64')
  })
  assert.equal(
    headers['Content-Security-Policy'],
    `default-src 'none'; style-src 'sha256-${style}'; script-src 'sha256-${script}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
  )
})

test('The Content Security Policy of a page with a logo allows data: images only', () => {
  const { headers } = pagesWith({ logo: 'data:image/png;base64,AA==' }).signedOut(visit)

  assert.match(String(headers['Content-Security-Policy']), /; img-src data:; /)
})

test('The Content Security Policy of a template allows its styles as browsers hash them', () => {
  const source = '<style>\r\nh1 { color: red }\r\n</style><h1>{{title}}</h1><style>p{}</style>'
  const { template } = parsePageTemplate(source, placeholdersOf('forbidden'))

  const { headers, body } = pagesWith({ templates: { forbidden: template } }).refusal('ERR_FORBIDDEN', asPage)

  const hashes = ['\nh1 { color: red }\n', 'p{}'].map((style) => createHash('sha256').update(style).digest('base64'))
  assert.equal(
    body,
    '<style>\nh1 { color: red }\n</style><h1>You do not have access to this page.</h1><style>p{}</style>',
  )
  assert.match(
    String(headers['Content-Security-Policy']),
    new RegExp(`; style-src ${hashes.map((hash) => `'sha256-${hash.replaceAll('+', '\\+')}'`).join(' ')};`),
  )
})

for (const page of [true, false]) {
  test(`a refusal ${page ? 'as a page' : 'as a problem document'} is not cached and reveals nothing to other sites`, () => {
    const { status, headers } = pagesWith().refusal('ERR_FORBIDDEN', { ...visit, asPage: page })

    assert.equal(status, 403)
    assert.equal(headers['Cache-Control'], 'no-store')
    assert.equal(headers['X-Content-Type-Options'], 'nosniff')
    assert.equal(headers['Referrer-Policy'], 'no-referrer')
  })
}

test('A refusal of a request that is not a page load is a problem document in English', () => {
  const signIn = 'https://app.example.com/.gatehouse/sign-in'
  const options = { requestId: 'r-1', acceptLanguage: 'de', asPage: false, signIn }
  const { headers, body } = pagesWith().refusal('ERR_UNAUTHENTICATED', options)

  assert.equal(headers['Content-Type'], 'application/problem+json')
  assert.deepEqual(JSON.parse(body), {
    type: 'about:blank',
    title: 'Unauthorized',
    status: 401,
    detail: 'Please sign in.',
    sign_in: signIn,
    request_id: 'r-1',
  })
})

test('A 401 has a challenge that opens no password dialog', () => {
  for (const page of [true, false]) {
    const { headers } = pagesWith().refusal('ERR_UNAUTHENTICATED', { ...visit, asPage: page })
    assert.match(String(headers['WWW-Authenticate']), /^Gatehouse realm="/)
  }
})

test('A 503 has Retry-After', () => {
  assert.equal(pagesWith().refusal('ERR_STORE_UNAVAILABLE', asPage).headers['Retry-After'], '5')
  assert.equal(problem('ERR_UPSTREAM_BUSY', { requestId: 'r' }).headers['Retry-After'], '5')
})

test('A refusal can set several cookies', () => {
  const { headers } = pagesWith().refusal('ERR_NO_ROUTE', {
    ...asPage,
    setCookies: ['a=1', 'b=2'],
    headers: { Allow: 'GET' },
  })

  assert.deepEqual(headers['Set-Cookie'], ['a=1', 'b=2'])
  assert.equal(headers['Allow'], 'GET')
})

test('The page after a sign-out starts no new sign-in', () => {
  const { status, headers, body } = pagesWith().signedOut(visit)

  assert.equal(status, 200)
  assert.match(body, /<a class="first" href="\/\.gatehouse\/sign-in">/)
  assert.doesNotMatch(body, /http-equiv|<script|<img|<iframe/)
  assert.equal(headers['Location'], undefined)
  assert.equal(headers['Refresh'], undefined)
})

test('The response to the sign-out form may redirect to the provider, and browsers send its Origin', () => {
  const { headers, body } = pagesWith().signOut(
    'asked_elsewhere',
    { prefix: '/.gatehouse/', formTargets: ['https://id.example.com'] },
    visit,
  )

  assert.match(body, /<form method="post" action="\/\.gatehouse\/sign-out">/)
  assert.match(body, /<a [^>]*href="\/"[^>]*>No, stay signed in<|<a href="\/">No, stay signed in</)
  assert.match(String(headers['Content-Security-Policy']), /form-action 'self' https:\/\/id\.example\.com;/)
  assert.equal(headers['Referrer-Policy'], 'same-origin')
})

test('The page of a failed sign-in offers another try and another account', () => {
  const { status, body } = pagesWith().refusal('ERR_SIGN_IN_EXPIRED', { ...asPage, returnTo: '/a?b=c' })

  assert.equal(status, 400)
  assert.match(body, /Your sign-in could not be completed/)
  assert.match(body, /href="\/\.gatehouse\/sign-in\?return_to=%2Fa%3Fb%3Dc">Try again</)
  assert.match(body, /href="\/\.gatehouse\/sign-in\?prompt=login&amp;return_to=%2Fa%3Fb%3Dc">Sign in with another acc/)
})

test('The page of a denied access offers another account', () => {
  const { body } = pagesWith().refusal('ERR_FORBIDDEN', { ...asPage, returnTo: '/admin/?a=b' })

  assert.match(
    body,
    /href="\/\.gatehouse\/sign-out\?then=sign-in&amp;return_to=%2Fadmin%2F%3Fa%3Db">Sign in with another/,
  )
})

test('A return_to that is too long is omitted from the links', () => {
  const { body } = pagesWith().refusal('ERR_FORBIDDEN', { ...asPage, returnTo: `/${'a'.repeat(2000)}` })

  assert.match(body, /href="\/\.gatehouse\/sign-out\?then=sign-in">/)
})

for (const [asked, language] of [
  [undefined, 'en'],
  ['de-CH, fr;q=0.9', 'de'],
  ['fr-CA', 'fr'],
  ['ja', 'ja'],
] as const)
  test(`to "${asked}" all pages speak ${language}, and say so`, () => {
    const responses = eachPage(pagesWith(), asked)

    for (const { headers, body } of Object.values(responses)) {
      assert.equal(headers['Content-Language'], language)
      assert.equal(headers['Vary'], 'Accept-Language')
      assert.match(body, new RegExp(`<html lang="${language}" dir="ltr">`))
    }
  })

test('A browser that accepts no supported language gets the configured language', () => {
  const { headers } = pagesWith({ language: 'fr' }).signedOut({ ...visit, acceptLanguage: 'nl, *;q=0.1' })

  assert.equal(headers['Content-Language'], 'fr')
})

test('Each text differs between the languages', () => {
  const shown = (language: Language) =>
    Object.values(eachPage(pagesWith(), language)).flatMap(({ body }) =>
      [...body.matchAll(/<(h1|p|a)\b[^>]*>([^<]+)</g)].map(([, , text]) => text),
    )
  const [english = [], ...others] = languages.map(shown)

  for (const other of others) {
    assert.equal(other.length, english.length)
    assert.deepEqual(
      other.filter((text) => english.includes(text)),
      [],
    )
  }
})

test('Each page shows the request ID, and each refusal its status', () => {
  for (const { status, body } of Object.values(eachPage(pagesWith())))
    assert.match(body, status === 200 ? />Request ID r-1</ : new RegExp(`>${status} · Request ID r-1<`))
})

test('A page has less than 3 KiB without its logo', () => {
  for (const language of languages)
    for (const { body } of Object.values(eachPage(pagesWith({ name: 'Example Ltd' }), language)))
      assert.ok(Buffer.byteLength(body) < 3072, `${Buffer.byteLength(body)} bytes`)
})

test('Buttons that end sessions are red, unless no red is readable on the surface', () => {
  const dangerOn = (surface: string) => {
    const { light } = plainPages.colours
    const { body } = pagesWith({ colours: { light: { ...light, surface }, dark: light } }).signedOut(visit)
    return /--danger: (#\w+)/.exec(body)?.[1]
  }

  assert.deepEqual(['#ffffff', '#1c2029', '#ee0000'].map(dangerOn), [
    '#b3261e',
    '#ff8f85',
    plainPages.colours.light.text,
  ])
})

test('Every page shows the name, the logo and the support', () => {
  const logo = 'data:image/png;base64,AA=='
  const support = { text: 'Service desk', url: 'mailto:help@example.com' }
  for (const { body } of Object.values(eachPage(pagesWith({ name: 'Example Ltd', logo, support })))) {
    assert.match(body, / – Example Ltd<\/title>/)
    assert.match(body, /<img src="data:image\/png;base64,AA==" alt="Example Ltd">/)
    assert.match(body, /Need help\? <a href="mailto:help@example\.com\?subject=r-1">Service desk<\/a>/)
  }
  const { body } = pagesWith({ name: 'Example Ltd', support: { text: 'Call 4711', url: undefined } }).signedOut(visit)
  assert.match(body, /<p class="name">Example Ltd<\/p>/)
  assert.match(body, /<p>Need help\? Call 4711<\/p>/)
})

test('A template is filled in the language of the browser, and replaces its own page only', () => {
  const source =
    '<html lang="{{lang}}"><h1>{{title}}</h1><a href="{{other_account_url}}">{{other_account_label}}</a> {{status}} {{request_id}}'
  const { template, faults } = parsePageTemplate(source, placeholdersOf('forbidden'))
  assert.deepEqual(faults, [])
  const pages = pagesWith({ templates: { forbidden: template } })

  const { forbidden, 'not-found': notFound } = eachPage(pages, 'de')

  assert.equal(
    forbidden.body,
    '<html lang="de"><h1>Sie haben keinen Zugriff auf diese Seite.</h1>' +
      '<a href="/.gatehouse/sign-out?then=sign-in&amp;return_to=%2Forders%3Fmonth%3Dmay">Mit einem anderen Konto anmelden</a> 403 r-1',
  )
  assert.match(notFound.body, /<main>/)
})

for (const language of languages)
  test(`The page about a loop has no link that repeats it (${language})`, () => {
    const text = (code: 'ERR_LOOP' | 'ERR_OVERLOADED') => {
      const { body } = pagesWith({ language }).refusal(code, asPage)
      return /<p>([^<]+)/.exec(body)?.[1]
    }

    assert.notEqual(text('ERR_LOOP'), undefined)
    assert.notEqual(text('ERR_LOOP'), text('ERR_OVERLOADED'))
  })
