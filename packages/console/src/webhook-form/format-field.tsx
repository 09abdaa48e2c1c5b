import { NativeSelect, PasswordInput } from '@mantine/core';
import type { UseFormReturnType } from '@mantine/form';
import { FORMATS, type Format, formatByName } from '@runhook/contract/formats';
import { EVENT_TEXTS, EVENT_TYPES_IN_ORDER } from '../wording/webhooks.ts';
import type { WebhookValues } from './webhook-values.ts';

/** The format and its options. Stored values of options are not shown; an empty field keeps the stored value. */
export function FormatField({ form }: { form: UseFormReturnType<WebhookValues> }) {
  const { formatOptions, storedFormatOptions } = form.values;
  const format = formatByName(form.values.format);
  const { error, ...optionProps } = form.getInputProps('formatOptions');
  return (
    <>
      <NativeSelect
        label="Format"
        description={format === null ? null : describeEventTypes(format)}
        data={FORMATS.map(({ name, label }) => ({ value: name, label }))}
        {...form.getInputProps('format')}
      />
      {Object.entries(format?.options ?? {}).map(([name, { label, hint, required }]) => (
        <PasswordInput
          key={name}
          label={label}
          description={`${hint} Stored encrypted and not shown again.`}
          required={required}
          autoComplete="off"
          placeholder={storedFormatOptions.includes(name) ? '***' : ''}
          {...optionProps}
          error={error}
          value={formatOptions[name] ?? ''}
          onChange={(event) =>
            form.setFieldValue('formatOptions', { ...formatOptions, [name]: event.currentTarget.value })
          }
        />
      ))}
    </>
  );
}

/** Names the events for which the format sends nothing. */
function describeEventTypes({ label, name, eventTypes }: Format): string {
  if (name === 'runhook') return 'The payload of the contract, as JSON.';
  const unused = EVENT_TYPES_IN_ORDER.filter((type) => !eventTypes.includes(type));
  if (unused.length === 0) return `Each event is sent as ${label} expects it.`;
  const listed = (types: typeof unused) => types.map((type) => `“${EVENT_TEXTS[type].label}”`).join(' and ');
  return `${label} uses ${listed(EVENT_TYPES_IN_ORDER.filter((type) => eventTypes.includes(type)))}. Nothing is sent for ${listed(unused)}.`;
}
