/** Fields that the status of a successful response has in version 2 of the API, in addition to its code. */
export const V2_STATUS = { is_success: true, user_message: 'Success!', developer_message: '' };
