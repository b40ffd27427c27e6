/** An expression of a module, and the text that takes its place. */
export interface Mutant {
  readonly start: number
  readonly end: number
  readonly line: number
  readonly replacement: string
}

export function mutantsOf(text: string): Promise<readonly Mutant[]>
export function withMutants(text: string, mutants: readonly (Mutant & { readonly number: number })[]): Promise<string>
