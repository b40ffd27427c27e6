/**
 * The settings that are used as they are written. All others are derived: each has a field of
 * `Derived`, under the same name or another one (`Renamed`).
 */
export type AsWritten<Settings, Derived, Renamed extends keyof Settings = never> = Omit<
  Settings,
  keyof Derived | Renamed
>
