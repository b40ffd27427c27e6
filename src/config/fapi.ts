import type { SigningAlgorithm } from './model/provider.ts'

/** The signature algorithms of the FAPI 2.0 Security Profile §5.4.1. */
export const fapiAlgorithms: readonly SigningAlgorithm[] = ['PS256', 'ES256', 'EdDSA']
