//! Which group is a user's own: one that nobody else is in.
//!
//! Read from `/etc/passwd` and `/etc/group`. Users who are only in a directory service are not seen there; then a
//! group is its owner's own when both have the same number, which is how such systems hand them out.

use std::collections::HashMap;

/// Users and groups of this machine, read on first need.
#[derive(Default)]
pub(super) struct Groups {
    tables: Option<Tables>,
}

#[derive(Default)]
struct Tables {
    /// uid → name and primary group.
    users: HashMap<u32, (String, u32)>,
    /// gid → name and members beyond those whose primary group it is.
    groups: HashMap<u32, (String, Vec<String>)>,
}

impl Groups {
    /// Whether only `owner` is in the group.
    pub(super) fn is_own(&mut self, group: u32, owner: u32) -> bool {
        self.tables().is_own(group, owner)
    }

    /// A user for people.
    pub(super) fn user(&mut self, id: u32) -> String {
        named(id, self.tables().users.get(&id).map(|user| &user.0))
    }

    /// A group for people.
    pub(super) fn group(&mut self, id: u32) -> String {
        named(id, self.tables().groups.get(&id).map(|group| &group.0))
    }

    fn tables(&mut self) -> &Tables {
        self.tables.get_or_insert_with(|| {
            let read = |path| std::fs::read_to_string(path).unwrap_or_default();
            Tables::parse(&read("/etc/passwd"), &read("/etc/group"))
        })
    }
}

impl Tables {
    fn parse(passwd: &str, group: &str) -> Self {
        let users = passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            Some((uid, (name.to_owned(), gid)))
        });
        let groups = group.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let gid = fields.nth(1)?.parse().ok()?;
            let members = fields.next().unwrap_or_default().split(',');
            let members = members.filter(|name| !name.is_empty()).map(str::to_owned);
            Some((gid, (name.to_owned(), members.collect())))
        });
        Self {
            users: users.collect(),
            groups: groups.collect(),
        }
    }

    fn is_own(&self, group: u32, owner: u32) -> bool {
        let Some((owner_name, primary)) = self.users.get(&owner) else {
            return group == owner && !self.shared_as_primary(group, owner);
        };
        let alone = self
            .groups
            .get(&group)
            .is_none_or(|(_, members)| members.iter().all(|member| member == owner_name));
        *primary == group && alone && !self.shared_as_primary(group, owner)
    }

    fn shared_as_primary(&self, group: u32, owner: u32) -> bool {
        self.users
            .iter()
            .any(|(uid, (_, gid))| *gid == group && *uid != owner)
    }
}

fn named(id: u32, name: Option<&String>) -> String {
    match name {
        Some(name) => format!("{name} ({id})"),
        None => id.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Tables;

    // contract: SAFE-3
    #[test]
    fn a_group_with_one_person_is_that_persons_own() {
        let tables = Tables::parse(
            "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:\nbob:x:1001:100::/home/bob:\ncy:x:1002:100::/:\nbroken\n",
            "root:x:0:\nann:x:1000:\nusers:x:100:\nteam:x:50:ann\nshared:x:1001:bob,ann\n",
        );
        assert!(tables.is_own(1000, 1000), "the user's private group");
        assert!(tables.is_own(0, 0));
        assert!(!tables.is_own(100, 1001), "primary group of two");
        assert!(!tables.is_own(50, 1000), "a group beside the primary one");
        assert!(
            !tables.is_own(1001, 1001),
            "same number, but not the primary group"
        );
        assert!(
            tables.is_own(7000, 7000),
            "a user the machine's files do not know"
        );
        assert!(!tables.is_own(7001, 7000));
    }
}
