/*
 * Something with a few members replaced, and otherwise as it is.
 */
export function altered<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get(_, key) {
      if (key in members) return members[key as keyof T]
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
