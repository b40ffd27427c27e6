import type { Setting } from '../document/report.ts'
import { endSessionPlaceholders, placeholdersIn } from '../end-session-params.ts'
import type { EndSessionConfig } from '../model/provider.ts'
import { providerKind, type ProviderKind } from '../provider-kind.ts'
import type { ProviderSettings } from '../settings.ts'

/** How the gateway signs out at the provider of these settings, which stand at `at`. */
export function readEndSession(settings: ProviderSettings, at: Setting): EndSessionConfig {
  const { endSessionParams, endSessionForm } = settings
  const paramsAt = at.below('end_session_params')
  for (const [name, value] of Object.entries(endSessionParams ?? {}))
    for (const placeholder of placeholdersIn(value ?? ''))
      if (!endSessionPlaceholders.some((known) => known === placeholder))
        paramsAt
          .below(name)
          .error(
            `has the unknown placeholder {${placeholder}}`,
            `the placeholders are ${endSessionPlaceholders.map((known) => `{${known}}`).join(', ')}`,
          )
  const usual = usualOf(providerKind(settings.issuer ?? ''))
  return {
    ...usual,
    endSessionParams: endSessionParams ?? usual.endSessionParams,
    endSessionForm: endSessionForm ?? usual.endSessionForm,
  }
}

/** What suits a provider. */
function usualOf(kind: ProviderKind): EndSessionConfig {
  switch (kind) {
    case 'cognito':
      // docs.aws.amazon.com/cognito/latest/developerguide/logout-endpoint.html
      return {
        endSessionParams: {
          ...{ client_id: '{client_id}', logout_uri: '{post_logout_redirect_uri}' },
          ...{ id_token_hint: null, post_logout_redirect_uri: null, state: null },
        },
        endSessionForm: 'never',
        longestEndSessionUrlBytes: 4096,
      }
    case 'entra':
      // Entra ID rejects a longer query with AADSTS90015. It needs no hint: it ends the session of
      // its cookie.
      return { endSessionParams: {}, endSessionForm: 'never', longestEndSessionUrlBytes: 2048 }
    case 'keycloak':
    case 'google':
    case 'other':
      return { endSessionParams: {}, endSessionForm: 'when_long', longestEndSessionUrlBytes: 4096 }
  }
}
