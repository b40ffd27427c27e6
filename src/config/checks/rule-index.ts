import { matchesPath } from '../../core/path-pattern.ts'
import type { RuleConfig } from '../model/rule.ts'

/** Finds rules of an upstream by the segments of their paths, because there may be thousands. */
class RuleIndex {
  readonly #rules: readonly RuleConfig[]
  readonly #root: Node = { rules: [], children: new Map() }
  readonly #texts: ReadonlySet<string>

  constructor(rules: readonly RuleConfig[]) {
    this.#rules = rules
    this.#texts = new Set(rules.map(({ path }) => path.text))
    for (const [index, { path }] of rules.entries()) {
      let node = this.#root
      for (const segment of path.segments) {
        const next = node.children.get(segment) ?? { rules: [], children: new Map() }
        node.children.set(segment, next)
        node = next
      }
      node.rules.push(index)
    }
  }

  /**
   * The index of the first rule that matches every request that `other` matches; -1 without one.
   */
  firstCovering(other: RuleConfig): number {
    const found = this.#along(this.#root, other.path.segments).map((rules) =>
      rules.find((index) => covers(this.#rules[index] as RuleConfig, other)),
    )
    const first = Math.min(...found.map((index) => index ?? Infinity))
    return first === Infinity ? -1 : first
  }

  hasPath(text: string): boolean {
    return this.#texts.has(text)
  }

  /** The rules whose segments begin the path. A "*" in a rule stands for any segment. */
  #along({ rules, children }: Node, [segment, ...others]: readonly string[]): (readonly number[])[] {
    if (segment === undefined) return [rules]
    const names = segment === '*' ? ['*'] : [segment, '*']
    const nodes = names.flatMap((name) => children.get(name) ?? [])
    return [rules, ...nodes.flatMap((node) => this.#along(node, others))]
  }
}

interface Node {
  readonly rules: number[]
  readonly children: Map<string, Node>
}

const indexes = new WeakMap<readonly RuleConfig[], RuleIndex>()

/** The index of these rules, which is built at the first call. */
export function ruleIndexOf(rules: readonly RuleConfig[]): RuleIndex {
  const index = indexes.get(rules) ?? new RuleIndex(rules)
  indexes.set(rules, index)
  return index
}

/** Whether a rule matches every request that the other rule matches. */
function covers(rule: RuleConfig, other: RuleConfig): boolean {
  const anyMethod = rule.methods === undefined
  const sameClients =
    rule.clients === undefined || (other.clients !== undefined && rule.clients.networks.covers(other.clients.networks))
  const sameMethods = anyMethod || (other.methods?.every((method) => hasMethod(rule, method)) ?? false)
  if (!sameClients || !sameMethods || (other.path.below && !rule.path.below)) return false
  // A "*" in the path of the other rule matches anything. Only a "*" covers it, because no segment
  // of this rule is named "*".
  const { suffix, ...path } = rule.path
  if (suffix === undefined || !other.path.below) return matchesPath(rule.path, other.path.segments)
  return other.path.suffix?.endsWith(suffix) === true && matchesPath(path, other.path.segments)
}

/** A rule for GET also applies to HEAD. */
function hasMethod({ methods }: RuleConfig, method: string): boolean {
  return methods === undefined || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))
}
