import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointRequest } from '../../src/http/endpoint-request.ts'
import type { SignInParts } from '../../src/sign-in/sign-in-parts.ts'
import { signIn } from '../../src/sign-in/sign-in.ts'

/** The link to the only provider of the page that asks for one. */
async function linkFor(query: string): Promise<string | undefined> {
  let links: readonly { readonly url: string }[] = []
  const parts = {
    choices: [{ prefix: '/.gatehouse/acme/', title: 'Acme', linkParams: ['hd'] }],
    cookie: { isForFrames: false },
    stepUps: [{ acr_values: ['mfa'] }],
    reservedPrefix: '/.gatehouse/',
    isLogoutLink: () => false,
    pages: {
      chooseProvider(choices: typeof links) {
        links = choices
        return { status: 200 }
      },
    },
  } as unknown as SignInParts
  const request = {
    ...{ host: 'a.example', externalUrl: new URL('https://a.example'), query: new URLSearchParams(query) },
  } as unknown as EndpointRequest
  await signIn(request, parts)
  return links[0]?.url
}

for (const [query, kept] of [
  ['return_to=%2Fa', 'return_to=%2Fa'],
  ['prompt=login&return_to=%2Fa', 'prompt=login&return_to=%2Fa'],
  ['prompt=none&return_to=%2Fa', 'return_to=%2Fa'],
  ['acr_values=mfa&return_to=%2Fa', 'acr_values=mfa&return_to=%2Fa'],
  ['acr_values=weak&return_to=%2Fa', 'return_to=%2Fa'],
  ['return_to=%2Fa&hd=a.example&other=b', 'return_to=%2Fa&hd=a.example'],
  ['return_to=%2Fa&hd=', 'return_to=%2Fa'],
  [`return_to=%2Fa&hd=${'x'.repeat(501)}`, 'return_to=%2Fa'],
] as const)
  test(`The sign-in at a chosen provider is the one that was asked for: ${query.slice(0, 60)}`, async () => {
    assert.equal(await linkFor(query), `/.gatehouse/acme/sign-in?${kept}`)
  })
