import {
  type Operation,
  type Paths,
  type Reference,
  type Response,
  responseObject,
  text,
} from './field-schemas.ts';

const V2_STATUS_EXAMPLE = { is_success: true, user_message: 'Success!', developer_message: '' };

/** Returns the paths with the status that successful responses of version 2 have. */
export function withV2Status(paths: Paths): Paths {
  const withStatus = (response: Response | Reference): Response | Reference => {
    const json = '$ref' in response ? undefined : response.content?.['application/json'];
    const code = json?.schema.properties?.status?.properties?.code;
    if ('$ref' in response || json === undefined || code === undefined || code.const === undefined)
      return response;
    const status = responseObject<{ code: number } & typeof V2_STATUS_EXAMPLE>('The result.', {
      code,
      is_success: { type: 'boolean', const: true, description: 'Always true.' },
      user_message: text('A sentence for people.'),
      developer_message: text('Always empty.'),
    });
    const schema = { ...json.schema, properties: { ...json.schema.properties, status } };
    const example = { ...(json.example as object), status: { code: code.const, ...V2_STATUS_EXAMPLE } };
    return { ...response, content: { 'application/json': { ...json, schema, example } } };
  };
  const withStatuses = (operation: Operation): Operation => ({
    ...operation,
    responses: Object.fromEntries(
      Object.entries(operation.responses).map(([code, response]) => [
        code,
        Number(code) < 300 ? withStatus(response) : response,
      ]),
    ),
  });
  return Object.fromEntries(
    Object.entries(paths).map(([path, { parameters, ...operations }]) => [
      path,
      {
        ...(parameters && { parameters }),
        ...Object.fromEntries(
          Object.entries(operations).map(([method, operation]) => [
            method,
            path.startsWith('/api/v2/') ? withStatuses(operation) : operation,
          ]),
        ),
      },
    ]),
  ) as Paths;
}
