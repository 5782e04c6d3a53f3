const OPERATORS: Record<string, (a: number, b: number) => number> = {
  '+': (a, b) => a + b,
  plus: (a, b) => a + b,
  加: (a, b) => a + b,
  '-': (a, b) => a - b,
  minus: (a, b) => a - b,
  减: (a, b) => a - b,
  '*': (a, b) => a * b,
  '×': (a, b) => a * b,
  x: (a, b) => a * b,
  times: (a, b) => a * b,
  乘: (a, b) => a * b,
  '/': (a, b) => a / b,
  '÷': (a, b) => a / b,
  除以: (a, b) => a / b,
}

/** "12 * 7" → "84"; undefined where it is no sum of two numbers, or has no finite answer. */
export const calculate = (text: string): string | undefined => {
  const [, left = '', sign = '', right = ''] =
    /^\s*(-?\d+(?:\.\d+)?)\s*([-+*/×÷x]|plus|minus|times|加|减|乘|除以)\s*(-?\d+(?:\.\d+)?)\s*$/iu.exec(text) ?? []
  const result = OPERATORS[sign.toLowerCase()]?.(Number(left), Number(right))
  return result === undefined || !Number.isFinite(result) ? undefined : String(Math.round(result * 1e6) / 1e6)
}
