import { signInUrl } from '../core/return-to.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import { asReference } from '../kept-forms/kept-requests.ts'
import { linkParamsOf } from './link-params.ts'
import { onlyValue, type SignInParts } from './parts.ts'
import { stepUpOf } from './step-up-of.ts'

/**
 * The page where a person chooses between the providers of an application. Each link begins the
 * same sign-in at one provider.
 */
export function chooseProvider(request: EndpointRequest, parts: SignInParts): Response {
  const { query } = request
  const options = {
    prompt: onlyValue(query, 'prompt') === 'login' ? 'login' : undefined,
    again: query.has('again'),
    kept: asReference(onlyValue(query, 'kept')),
    stepUp: stepUpOf(query, parts),
  } as const
  const returnTo = onlyValue(query, 'return_to')
  const choices = parts.choices.map((provider) => {
    const url = new URL(signInUrl(provider.prefix, returnTo, options), request.externalUrl)
    for (const [name, value] of Object.entries(linkParamsOf(query, provider))) url.searchParams.set(name, value)
    return { title: provider.title, url: url.pathname + url.search }
  })
  return parts.pages.chooseProvider(choices, request)
}
