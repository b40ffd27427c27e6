export interface Address {
  readonly host: string
  readonly port: number
}

export interface Subnet {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}
