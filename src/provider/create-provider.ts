import type { ProviderConfig } from '../config/model/provider.ts'
import { OAuth2Provider } from './oauth2-provider.ts'
import { OpenidProvider } from './openid-provider.ts'
import type { Provider, ProviderParts } from './provider.ts'

/** The client of the provider, as its `kind` demands. */
export function createProvider(config: ProviderConfig, parts: ProviderParts): Provider {
  return config.oauth2 === undefined
    ? new OpenidProvider(config, parts)
    : new OAuth2Provider(config, config.oauth2, parts)
}
