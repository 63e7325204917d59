import { CUdevice_attribute } from '@shoal/cuda-sys/driver'
import { describeValue } from '@shoal/types'

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** The attributes of a device: `CUdevice_attribute` without its prefix, such as `'MULTIPROCESSOR_COUNT'`. */
export type DeviceAttribute = Exclude<WithoutPrefix<keyof typeof CUdevice_attribute, 'CU_DEVICE_ATTRIBUTE_'>, 'MAX'>

const prefix = 'CU_DEVICE_ATTRIBUTE_'

/** The code of an attribute, or a TypeError for a name there is not. */
export function deviceAttributeCode(attribute: DeviceAttribute): CUdevice_attribute {
  const name = prefix + String(attribute)
  if (attribute === ('MAX' as string) || !Object.hasOwn(CUdevice_attribute, name)) {
    throw new TypeError(`unknown device attribute ${describeValue(attribute)}`)
  }
  return (CUdevice_attribute as Readonly<Record<string, CUdevice_attribute>>)[name] as CUdevice_attribute
}

/** Every attribute by name, in the order of the C header; names that share a code are all there. */
export function deviceAttributeNames(): readonly DeviceAttribute[] {
  return Object.keys(CUdevice_attribute)
    .filter((name) => name.startsWith(prefix) && name !== `${prefix}MAX`)
    .map((name) => name.slice(prefix.length) as DeviceAttribute)
}
