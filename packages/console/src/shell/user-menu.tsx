import { Button, type MantineColorScheme, Menu, Text, useMantineColorScheme } from '@mantine/core';
import { IconDeviceDesktop, IconLogout, IconMoon, IconSun, IconUserCircle } from '@tabler/icons-react';
import { useNavigate } from 'react-router';
import { SIGN_OUT_PATH } from '../paths.ts';
import { useSession } from '../session/session.ts';
import classes from './user-menu.module.css';

const SCHEMES: { value: MantineColorScheme; label: string; icon: typeof IconSun }[] = [
  { value: 'light', label: 'Light', icon: IconSun },
  { value: 'dark', label: 'Dark', icon: IconMoon },
  { value: 'auto', label: 'As the system', icon: IconDeviceDesktop },
];

/** Who is signed in, how the console looks, and the way out. */
export function UserMenu() {
  const { name, email } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  return (
    <Menu position="bottom-end" width={250}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          size="sm"
          px={6}
          className={classes.target ?? ''}
          aria-label={`You: ${name}`}
          leftSection={<IconUserCircle size={22} aria-hidden />}
        >
          <span className={classes.name}>{name}</span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)" className={classes.who ?? ''}>
            {name}
          </Text>
          <Text size="xs" className={classes.who ?? ''}>
            {email}
          </Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Label>Appearance</Menu.Label>
        <Menu.RadioGroup
          value={colorScheme}
          onChange={(value) => setColorScheme(value as MantineColorScheme)}
        >
          {SCHEMES.map(({ value, label, icon: Icon }) => (
            <Menu.RadioItem key={value} value={value} rightSection={<Icon size={16} aria-hidden />}>
              {label}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item
          leftSection={<IconLogout size={16} aria-hidden />}
          onClick={() => void navigate(SIGN_OUT_PATH, { state: { isAsked: true } })}
        >
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
