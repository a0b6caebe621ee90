-- A search by words alone took as long as all that its words are in: 190 ms for 500 words at 100,000 statements.
set local role graphium_owner;
set local lock_timeout = '10s';

insert into graphium_private.settings (name, value, note) values
  ('word_postings', 30000, 'A search by words alone goes by the rarest of the query''s words, until what these are in comes to so many statements; commoner words are left out, as stop words are. More finds what only common words tell apart, and takes longer: some .6 us a posting.');
