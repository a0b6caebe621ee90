"""The rules of rules.toml: each rule's own examples, the known hard cases, and what a rule file may not be."""

from __future__ import annotations

import hashlib
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.classification import Score, is_looked_at, is_wrong
from graphium_db import classify
from graphium_db.classification import Rule, load, rule_set

RULES = rule_set().rules
# PostgreSQL keeps the last 32 compiled regular expressions of a session; with the fold's and ingest's own ones, more
# rules than this would be compiled again for every sentence.
MOST_RULES = 23


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_examples(rule: Rule) -> None:
    assert rule.why
    assert rule.match
    for text in rule.match:
        assert classify(text).rule == rule.id, text
    for text in rule.no_match:
        assert classify(text).rule != rule.id, text


def test_rules_fit_the_cache_of_a_session() -> None:
    assert len(RULES) <= MOST_RULES


def test_patterns_use_only_what_both_engines_read_alike() -> None:
    for rule in RULES:
        rest = re.sub(r"\[\^?\w+\]|\(\?:|\(\?!|[()|?*+^$.\w]|\{\d(,\d)?\}", "", rule.regex)
        assert rest == "", rule.id
        assert not re.search(r"[*+?}][*+?{]", rule.regex), rule.id  # no possessive or lazy quantifier


@pytest.mark.parametrize(
    ("text", "memory_type"),
    [
        ("PostgreSQL uses MVCC", "fact"),
        ("I hate cilantro", "preference"),
        ("I want error messages explained", "preference"),
        ("if we decided to move, we would need a bigger van", "fact"),
        ("If we decided to move, we would sell the house.", "fact"),
        ("She said I should rest", "advice"),
        ("The game is over because of the rain.", "fact"),
        ("It is over.", "fact"),
        ("**bold** and *stars*", "fact"),
        ("https://example.com/i-love-you/we-decided-to-go?should=you", "fact"),
        ("for i in range(10): print(i)", "fact"),
        ("if (should_retry) { return decide(x); }", "fact"),
        ("2026-11-30 06:52:11 ERROR worker: decision node failed, retry=3", "fact"),
        ("| like | hate | plan |", "fact"),
        ("**I decided to move.**", "decision"),
        ("> I hate cilantro", "preference"),
        ("- I prefer tea", "preference"),
        ("`SELECT decided FROM plans;`", "fact"),
        ("I haven't decided yet", "fact"),
        ("Did you decide?", "fact"),
        ("", "fact"),
        ("?", "fact"),
    ],
)
def test_hard_cases(text: str, memory_type: str) -> None:
    assert classify(text).memory_type == memory_type


@pytest.mark.parametrize(
    ("text", "memory_type", "layer_kind"),
    [
        ("PostgreSQL uses MVCC.", "fact", "on_demand"),
        ("I hate cilantro.", "preference", "preloaded"),
        ("The game is over because of the rain.", "fact", "on_demand"),
        ("I want error messages explained.", "preference", "preloaded"),
        ("If we decided to move, we would need a bigger van.", "fact", "on_demand"),
        ("If I had chosen law, I would be rich now.", "fact", "on_demand"),
        ("She said I should rest.", "advice", "on_demand"),
        ("My doctor told me to drink more water.", "advice", "on_demand"),
        ("He suggested moving the backup to another region.", "advice", "on_demand"),
        ("The vet says we ought to keep her indoors.", "advice", "on_demand"),
        ("Mum advised me not to sign the contract.", "advice", "on_demand"),
        ("She said she would come on Monday.", "fact", "on_demand"),
        ("He said he sold the car yesterday.", "event", "on_demand"),
        ("She told me she loves jazz.", "preference", "preloaded"),
        ("They said they decided to cancel the trip.", "decision", "on_demand"),
        ("We haven't chosen a database yet.", "fact", "on_demand"),
        ("We might decide later.", "fact", "on_demand"),
        ("Who decided this?", "fact", "on_demand"),
        ("Should we move to Postgres?", "fact", "on_demand"),
        ("Would you like some tea?", "fact", "on_demand"),
        ("Is it true that she hates dogs?", "fact", "on_demand"),
        ("I wonder whether we should move.", "fact", "on_demand"),
        ("It was decided that the office closes at five.", "decision", "on_demand"),
        ("The team chose Postgres over MySQL.", "decision", "on_demand"),
        ("Ada decided to leave the company.", "decision", "on_demand"),
        ("After a long debate, the board agreed on the new logo.", "decision", "on_demand"),
        ("We are switching to Kubernetes next quarter.", "decision", "on_demand"),
        ("We'll use Postgres, not MySQL.", "decision", "on_demand"),
        ("I've made up my mind: no more coffee.", "decision", "on_demand"),
        ("We opted for the cheaper plan.", "decision", "on_demand"),
        ("Let's go with the blue one.", "decision", "on_demand"),
        ("Let's use tabs.", "decision", "on_demand"),
        ("The board approved the budget.", "event", "on_demand"),
        ("The decision was postponed.", "event", "on_demand"),
        ("The decision tree has twelve leaves.", "fact", "on_demand"),
        ("Decision trees overfit easily.", "fact", "on_demand"),
        ("The preferred stock pays four percent.", "fact", "on_demand"),
        ("The error message says that the plan is invalid.", "fact", "on_demand"),
        ("Like most birds, the wren builds a nest.", "fact", "on_demand"),
        ("It looks like rain.", "fact", "on_demand"),
        ("He runs like the wind.", "fact", "on_demand"),
        ("The like button is broken.", "fact", "on_demand"),
        ("The love of money is the root of evil.", "fact", "on_demand"),
        ("The hate speech policy applies to all users.", "fact", "on_demand"),
        ("The advice column appears on Sundays.", "fact", "on_demand"),
        ("The deadline is October 15th.", "fact", "on_demand"),
        ("Alice paid Bob.", "event", "on_demand"),
        ("Bob paid Alice on Friday.", "event", "on_demand"),
        ("The server crashed last night.", "event", "on_demand"),
        ("We launched the site on 3 March.", "event", "on_demand"),
        ("My grandmother died in 2015.", "event", "on_demand"),
        ("The meeting was cancelled.", "event", "on_demand"),
        ("I ran my first marathon on Sunday.", "event", "on_demand"),
        ("They got married in June.", "event", "on_demand"),
        ("Our flight was delayed by three hours.", "event", "on_demand"),
        ("I was born in 1985.", "event", "on_demand"),
        ("She gave birth to a girl on Tuesday.", "event", "on_demand"),
        ("The kids broke the window.", "event", "on_demand"),
        ("The kids go to school in Leeds.", "fact", "on_demand"),
        ("Water boils at 100 degrees.", "fact", "on_demand"),
        ("The API returns JSON.", "fact", "on_demand"),
        ("Our office is in Riga.", "fact", "on_demand"),
        ("Tomasz lives in Gdansk.", "fact", "on_demand"),
        ("Ada is a surgeon.", "fact", "on_demand"),
        ("I am a surgeon.", "fact", "preloaded"),
        ("I'm 34 years old.", "fact", "preloaded"),
        ("I work at a bakery.", "fact", "preloaded"),
        ("I live in Oslo with two cats.", "fact", "preloaded"),
        ("I'm allergic to peanuts.", "fact", "preloaded"),
        ("My name is Noor.", "fact", "preloaded"),
        ("I have three children.", "fact", "preloaded"),
        ("My wife is a nurse.", "fact", "preloaded"),
        ("I speak Polish and Dutch.", "fact", "preloaded"),
        ("I'm from Brazil.", "fact", "preloaded"),
        ("I was raised in a small village.", "fact", "preloaded"),
        ("I'm left-handed.", "fact", "preloaded"),
        ("My birthday is on May 4th.", "fact", "preloaded"),
        ("I'm a vegetarian.", "fact", "preloaded"),
        ("I don't eat meat.", "preference", "preloaded"),
        ("I no longer eat meat.", "preference", "preloaded"),
        ("I prefer tea to coffee.", "preference", "preloaded"),
        ("I never drink alcohol.", "preference", "preloaded"),
        ("I can't stand loud music.", "preference", "preloaded"),
        ("I usually read before bed.", "preference", "preloaded"),
        ("My favourite colour is green.", "preference", "preloaded"),
        ("Ada prefers written feedback.", "preference", "preloaded"),
        ("Tomasz hates long meetings.", "preference", "preloaded"),
        ("Tomasz doesn't like long meetings.", "preference", "preloaded"),
        ("I'm not a fan of horror films.", "preference", "preloaded"),
        ("We love hiking.", "preference", "preloaded"),
        ("I really enjoy gardening.", "preference", "preloaded"),
        ("I'd rather have short answers.", "preference", "preloaded"),
        ("I want short answers.", "preference", "preloaded"),
        ("I like my coffee black.", "preference", "preloaded"),
        ("I always sit by the window.", "preference", "preloaded"),
        ("I dislike being interrupted.", "preference", "preloaded"),
        ("I loved the concert.", "preference", "on_demand"),
        ("I didn't like the film.", "preference", "on_demand"),
        ("I would prefer the window seat.", "preference", "on_demand"),
        ("Always answer in Spanish.", "advice", "preloaded"),
        ("Never share my address.", "advice", "preloaded"),
        ("From now on, reply in French.", "advice", "preloaded"),
        ("Use metric units when you talk to me.", "advice", "preloaded"),
        ("Don't ever call me before nine.", "advice", "preloaded"),
        ("Don't give up.", "advice", "on_demand"),
        ("You should see a doctor.", "advice", "on_demand"),
        ("You shouldn't drink that.", "advice", "on_demand"),
        ("You'd better leave now.", "advice", "on_demand"),
        ("Try restarting the router.", "advice", "on_demand"),
        ("Make sure to back up first.", "advice", "on_demand"),
        ("It's best to book early.", "advice", "on_demand"),
        ("I recommend the ramen.", "advice", "on_demand"),
        ("I'd suggest a lighter bike.", "advice", "on_demand"),
        ("Consider adding an index on the foreign key.", "advice", "on_demand"),
        ("Avoid long transactions.", "advice", "on_demand"),
        ("Never run migrations on Fridays.", "advice", "preloaded"),
        ("If it rains, take the bus.", "advice", "on_demand"),
        ("Before you deploy, run the tests.", "advice", "on_demand"),
        ("One should never swim alone.", "advice", "on_demand"),
        ("You might want to check the oil.", "advice", "on_demand"),
        ("Why don't you ask her?", "advice", "on_demand"),
        ("Have you tried turning it off and on again?", "advice", "on_demand"),
        ("If I were you, I would apologise.", "advice", "on_demand"),
        ("I learned that the cache was stale.", "discovery", "on_demand"),
        ("We discovered a leak in the pool.", "discovery", "on_demand"),
        ("Turns out the shop closes at noon.", "discovery", "on_demand"),
        ("I realised I was wrong.", "discovery", "on_demand"),
        ("It taught me patience.", "discovery", "on_demand"),
        ("I found out that he is married.", "discovery", "on_demand"),
        ("The tests showed that the index was not used.", "discovery", "on_demand"),
        ("I now understand why it failed.", "discovery", "on_demand"),
        ("We figured out the cause of the crash.", "discovery", "on_demand"),
        ("It dawned on me that I had forgotten the keys.", "discovery", "on_demand"),
        ("I noticed that she was limping.", "discovery", "on_demand"),
        ("I didn't know that whales sleep.", "discovery", "on_demand"),
        ("I don't know yet.", "fact", "on_demand"),
        ("I'm learning Spanish.", "fact", "on_demand"),
        ("I plan to retire next year.", "decision", "on_demand"),
        ("I'm going to quit my job.", "decision", "on_demand"),
        ("I'll call her tomorrow.", "decision", "on_demand"),
        ("We intend to hire two engineers.", "decision", "on_demand"),
        ("I won't go there again.", "decision", "on_demand"),
        ("I've decided not to apply.", "decision", "on_demand"),
        ("I am thinking about moving to Lisbon.", "decision", "on_demand"),
        ("It will rain tomorrow.", "fact", "on_demand"),
        ("The train will be late.", "fact", "on_demand"),
        ("I would have called you.", "fact", "on_demand"),
        ("I should have brought an umbrella.", "fact", "on_demand"),
        ("I can swim.", "fact", "on_demand"),
        ("I must be dreaming.", "fact", "on_demand"),
        ("That must be hard.", "fact", "on_demand"),
        ("Nobody decided anything.", "fact", "on_demand"),
        ("Nobody likes him.", "fact", "on_demand"),
        ("I did not decide that.", "fact", "on_demand"),
        ("We never agreed to this.", "fact", "on_demand"),
        ("I have not made up my mind.", "fact", "on_demand"),
        ("We were going to move, but we stayed.", "fact", "on_demand"),
        ("**bold** and *stars*", "fact", "on_demand"),
        ("# Decisions", "fact", "on_demand"),
        ("## What I learned", "fact", "on_demand"),
        ("- [ ] decide", "fact", "on_demand"),
        ("| preference | advice | decision |", "fact", "on_demand"),
        ("https://example.com/you-should/decide?i=love", "fact", "on_demand"),
        ("See https://example.com/i-love-tea for details", "fact", "on_demand"),
        ('`git commit -m "decided"`', "fact", "on_demand"),
        ("git push origin main", "fact", "on_demand"),
        ("SELECT * FROM decisions WHERE advice = 'should';", "fact", "on_demand"),
        ("def should_retry(x): return x.decided", "fact", "on_demand"),
        ("if (user.likes(x)) { decide(); }", "fact", "on_demand"),
        ("import numpy as np", "fact", "on_demand"),
        ("const preferred = await getPreferred();", "fact", "on_demand"),
        ("return a < b", "fact", "on_demand"),
        ("2026-11-30T10:00:00Z INFO decided to retry", "fact", "on_demand"),
        ("[2026-11-30 10:00:00] WARN  you should upgrade", "fact", "on_demand"),
        ("ERROR: I think you should not see this", "fact", "on_demand"),
        ("Nov 30 10:00:00 host sshd[1]: Accepted password for root", "fact", "on_demand"),
        ('127.0.0.1 - - [30/Nov/2026] "GET /love HTTP/1.1" 200', "fact", "on_demand"),
        ('{"decision": "approved", "like": true}', "fact", "on_demand"),
        ('<div class="like">love</div>', "fact", "on_demand"),
        ("x = prefer + should", "fact", "on_demand"),
        ("Traceback (most recent call last):", "fact", "on_demand"),
        ('  File "decide.py", line 3, in choose', "fact", "on_demand"),
        ("docker run --rm postgres", "fact", "on_demand"),
        ("npm install i-love-tea", "fact", "on_demand"),
        ("> I hate cilantro.", "preference", "preloaded"),
        ('"I hate cilantro."', "preference", "preloaded"),
        ("- I hate cilantro", "preference", "preloaded"),
        ("1. I hate cilantro", "preference", "preloaded"),
        ("* I prefer tea.", "preference", "preloaded"),
        ("**We decided to move.**", "decision", "on_demand"),
        ("| we decided to move |", "decision", "on_demand"),
        ("Please keep your answers short.", "advice", "preloaded"),
        ("We decided to set work_mem = 64MB.", "decision", "on_demand"),
        ("See https://example.com/#we-decided|i~should", "fact", "on_demand"),
        ("I love `git rebase`.", "preference", "preloaded"),
        ("Run `we decided to move` first", "advice", "on_demand"),
        ("| start | stop |", "fact", "on_demand"),
        ("[WARN] you should upgrade", "fact", "on_demand"),
        ("[2026-11-30 10:00:00] [INFO] scheduler: job should run, never skip", "fact", "on_demand"),
        ('$ git commit -am "decided to use postgres"', "fact", "on_demand"),
        ('curl -X POST localhost -d "never share this"', "fact", "on_demand"),
        ("Git is my favourite tool.", "preference", "preloaded"),
        ("-I decided to move", "decision", "on_demand"),
        ("We decided -finally- to go.", "decision", "on_demand"),
        ("It was -5 degrees yesterday.", "event", "on_demand"),
        ("- [x] We decided to move.", "decision", "on_demand"),
        ("[Sam] I love tea.", "preference", "preloaded"),
        ("I wish it would stop raining.", "fact", "on_demand"),
        ("He wishes he had stayed.", "fact", "on_demand"),
        ("Had I known, I would have stayed.", "fact", "on_demand"),
        ("Had a great time at the beach.", "event", "on_demand"),
        ("I wish to cancel my order.", "decision", "on_demand"),
        ("The board did not decide anything.", "fact", "on_demand"),
        ("We didn't buy the house.", "fact", "on_demand"),
        ("She never called.", "fact", "on_demand"),
        ("He didn't show up yesterday.", "event", "on_demand"),
        ("She had better not tell him.", "advice", "on_demand"),
        ("We had better weather this time.", "event", "on_demand"),
        ("Never push to main.", "advice", "preloaded"),
        ("Never stop learning.", "advice", "on_demand"),
        ("I'm Aisha.", "fact", "preloaded"),
        ("Hi, I'm Sam, and I run the lab.", "fact", "preloaded"),
        ("I'm tired.", "fact", "on_demand"),
        ("I'm hungry.", "fact", "on_demand"),
        ("I'm the CTO.", "fact", "preloaded"),
        ("I'm the one who called.", "fact", "on_demand"),
        ("My native language is Polish.", "fact", "preloaded"),
        ("My email is down.", "fact", "on_demand"),
        ("Dark mode works best for me.", "preference", "preloaded"),
        ("Omar won't eat meat.", "preference", "preloaded"),
        ("The user's name is Ilse.", "fact", "preloaded"),
        ("User's time zone is CET.", "fact", "preloaded"),
        ("User is diabetic.", "fact", "preloaded"),
        ("The user is allergic to shellfish.", "fact", "preloaded"),
        ("This user lives in Porto with two cats.", "fact", "preloaded"),
        ("The user works as a welder.", "fact", "preloaded"),
        ("User has two daughters.", "fact", "preloaded"),
        ("The user's husband is a baker.", "fact", "preloaded"),
        ("The user wants brief replies.", "preference", "preloaded"),
        ("The user doesn't prefer long emails.", "preference", "preloaded"),
        ("User avoids dairy.", "preference", "preloaded"),
        ("The user table has 3 columns.", "fact", "on_demand"),
        ("The user interface is slow.", "fact", "on_demand"),
        ("The users can log in.", "fact", "on_demand"),
        ("The user clicks Save.", "fact", "on_demand"),
        ("The user's name is stored in a cookie.", "fact", "on_demand"),
        ("The user is an admin.", "fact", "on_demand"),
        ("The user is logged in.", "fact", "on_demand"),
        ("The user's name is required.", "fact", "on_demand"),
        ("The user values are kept in a map.", "fact", "on_demand"),
        ("I hate it when this happens.", "preference", "on_demand"),
        ("I hate when that happens.", "preference", "on_demand"),
        ("I'd rather receive brief summaries.", "preference", "preloaded"),
        ("I'd prefer that you answer in Dutch.", "preference", "preloaded"),
        ("I'd like you to reply without emojis.", "preference", "preloaded"),
        ("I'd rather you left at five.", "preference", "on_demand"),
        ("Decision: the parser stays in C.", "decision", "on_demand"),
        ("### Decision: ship on Friday", "decision", "on_demand"),
        ("Preference: light mode", "preference", "preloaded"),
        ("Lesson learned: the cache needs a limit.", "discovery", "on_demand"),
        ("Tip: warm the pan first.", "advice", "on_demand"),
        ("| Decision | Owner | Date |", "fact", "on_demand"),
        ("Decision: pending", "fact", "on_demand"),
        ("The package should be there by noon.", "fact", "on_demand"),
        ("We should be back by ten.", "fact", "on_demand"),
        ("We should be more careful.", "advice", "on_demand"),
        ("Never mind.", "fact", "on_demand"),
        ("Didn't know you can grow ginger indoors.", "discovery", "on_demand"),
        ("Let's see what happens.", "fact", "on_demand"),
        ("Let's see a film tonight.", "decision", "on_demand"),
        ("I'll be right back.", "fact", "on_demand"),
        ("He did not mention whether she had chosen a dress.", "fact", "on_demand"),
        ('console.log("I love tea")', "fact", "on_demand"),
        ("logger.info('We decided to retry')", "fact", "on_demand"),
        ('I (really) prefer "green" tea.', "preference", "preloaded"),
        ("Grandpa moved to a care home in May.", "event", "on_demand"),
        ("My brother broke his arm.", "event", "on_demand"),
        ("My daughter adores horses.", "preference", "preloaded"),
        ("Our kids hate broccoli.", "preference", "preloaded"),
        ("I have a cat called Tom.", "fact", "preloaded"),
        ("Use of cameras is banned.", "fact", "on_demand"),
        ("Think of it as a loan.", "advice", "on_demand"),
        ("Always nice to meet you.", "fact", "on_demand"),
        ("The user is a string.", "fact", "on_demand"),
        ("The user account is locked.", "fact", "on_demand"),
        ("The user has no permission to delete rows.", "fact", "on_demand"),
        ("The user works with the table editor.", "fact", "on_demand"),
        ("The user's title is shown in the header.", "fact", "on_demand"),
        ("The user's locale is read from the header.", "fact", "on_demand"),
        ("The user's email address is used as the key.", "fact", "on_demand"),
        ("The user is a member of the group.", "fact", "on_demand"),
        ("The user is an instance of Model.", "fact", "on_demand"),
        ("The user's name is optional.", "fact", "on_demand"),
        ("User comes from the session.", "fact", "on_demand"),
        ("The user comes from the token.", "fact", "on_demand"),
        ("The user lives in the users table.", "fact", "on_demand"),
        ("User is a superuser by default.", "fact", "on_demand"),
        ("The customer's name is a text field.", "fact", "on_demand"),
        ("The user is a vegetarian.", "fact", "preloaded"),
        ("The user is from Brazil.", "fact", "preloaded"),
        ("Our user is a data scientist at a bank.", "fact", "preloaded"),
        ("The user's pronouns are they/them.", "fact", "preloaded"),
        ("The user's occupation is plumber.", "fact", "preloaded"),
        ("The user has been a teacher for ten years.", "fact", "preloaded"),
        ("The user's native language is Greek.", "fact", "preloaded"),
        ("The user has an allergy to penicillin.", "fact", "preloaded"),
        ("The customer lives in Bergen.", "fact", "preloaded"),
        ("The user suffers from migraines.", "fact", "preloaded"),
        ("The user does not eat meat.", "preference", "preloaded"),
        ("User never drinks alcohol.", "preference", "preloaded"),
        ("The user can't stand loud music.", "preference", "preloaded"),
        ("The user's favourite colour is green.", "preference", "preloaded"),
        ("The user enjoys hiking.", "preference", "preloaded"),
        ("User hates long meetings.", "preference", "preloaded"),
        ("The user is a big fan of jazz.", "preference", "preloaded"),
        ("The user likes answers with examples.", "preference", "preloaded"),
        ("The user decided to move to Rome.", "decision", "on_demand"),
        ("The user bought a boat last week.", "event", "on_demand"),
        ("The user is deaf.", "fact", "preloaded"),
        ("The user lives near Turin.", "fact", "preloaded"),
        ("The user is a father of three.", "fact", "preloaded"),
        ("The user's wife works at a hospital.", "fact", "preloaded"),
        ("The user has no children.", "fact", "preloaded"),
        ("The user is not a native speaker of English.", "fact", "preloaded"),
        ("The user dislikes small talk.", "preference", "preloaded"),
        ("The user would like you to write in Spanish.", "preference", "preloaded"),
        ("User only drinks decaf.", "preference", "preloaded"),
        ("The user needs short answers.", "preference", "preloaded"),
        ("The user role is stored per tenant.", "fact", "on_demand"),
        ("The user has a session that never expires.", "fact", "on_demand"),
        ("The user is a value of the enum.", "fact", "on_demand"),
        ("The user is prompted for a password.", "fact", "on_demand"),
        ("The user agent is a header.", "fact", "on_demand"),
        ("I'm so glad for you.", "fact", "on_demand"),
        ("I am not afraid of you.", "fact", "on_demand"),
        ("I am afraid of the dark.", "fact", "preloaded"),
        ("The user does not have children.", "fact", "preloaded"),
        ("The user has child accounts.", "fact", "on_demand"),
        ("I'd prefer if you used metric units.", "preference", "preloaded"),
        ("I'd rather you answer briefly.", "preference", "preloaded"),
        ("I'd rather you call her tomorrow.", "preference", "on_demand"),
        ("I'd prefer short replies.", "preference", "preloaded"),
        ("**Decision:** keep Postgres.", "decision", "on_demand"),
        ("- Decision: no meetings on Mondays.", "decision", "on_demand"),
        ("Recommendation: rotate the keys every month.", "advice", "on_demand"),
        ("Insight: most users never scroll.", "discovery", "on_demand"),
        ("Preferences: metric units, no emojis", "preference", "preloaded"),
        ("You should be fine.", "fact", "on_demand"),
        ("You should be honest with her.", "advice", "on_demand"),
        ("Kids should be in bed by eight.", "advice", "on_demand"),
        ("I should be home around nine.", "fact", "on_demand"),
        ("I'll think of a plan and write to them.", "decision", "on_demand"),
        ("She didn't tell me if he agreed to come.", "fact", "on_demand"),
        ('alert("You should update now")', "fact", "on_demand"),
        ("My grandmother fell in the garden.", "event", "on_demand"),
        ("My wife and I love sailing.", "preference", "preloaded"),
        ("His sister enjoys chess.", "preference", "preloaded"),
        ("The cat food is empty.", "fact", "on_demand"),
        ("I hope your kids enjoy the trip.", "fact", "on_demand"),
    ],
)
def test_sentences_of_every_kind(text: str, memory_type: str, layer_kind: str) -> None:
    found = classify(text)
    assert (found.memory_type, found.layer_kind) == (memory_type, layer_kind)


@pytest.mark.parametrize(
    "text",
    [
        "I ragazzi hanno deciso di partire.",
        "I gatti sono belli e i cani no.",
        "I am nur ein Wort, sagte er.",
        "Wir will das nicht.",
        "Er will nicht gehen.",
        "Was will er?",
        "Die Katze war alt.",
        "Man must do what?",
        "Ze gaat me helpen.",
        "We gaan naar huis.",
        "We moeten morgen werken.",
        "We hate dat.",
        "We zijn gisteren verhuisd naar Utrecht.",
        "Hij is dol op me.",
        "I går køpte vi en bil.",
        "I dag er det varmt.",
        "I morgen skal vi rejse til Norge.",
        "I natt har det snöat i hela landet.",
        "I fjor var jeg i Paris.",
        "Vi had en god tid.",
        "Ek hou van tee.",
        "Ek is moeg.",
        "My pa is 'n boer.",
        "My ma het gister brood gekoop.",
        "Ons het besluit om te trek.",
        "Read war ein Dorf.",
        "Get up, sagde han.",
        "I poszedłem do domu.",
        "I tak zrobimy, bo lubię herbatę.",
        "I onda smo odlučili da idemo.",
        "I já mám rád čaj.",
        "A my jsme se rozhodli.",
        "My jesteśmy z Polski.",
        "My lubimy kawę.",
        "Am decis să plec mâine.",
        "Am fost ieri la piață.",
        "Am o soră și doi frați.",
        "Me encanta el té.",
        "No me gusta el café.",
        "Me he decidido por el azul.",
        "On a décidé de partir.",
        "On was dom.",
        "Do you té?",
        "Die will ich nicht.",
        "Had ik maar.",
        "Was ik maar thuis.",
        "Is dit so?",
        "Is e do bheatha.",
        "So bin ich eben.",
        "So war das gestern.",
        "Also gut, dann gehen wir.",
        "Also haben wir entschieden.",
        "Never mind, sagte sie.",
        "Dan was er nog iets.",
        "Let wel, dit is belangrijk.",
        "To jest dobre.",
        "To be ili ne biti.",
        "Plan je jasan.",
        "Use sempre o capacete.",
        "Visite a nossa loja.",
        "Note que o prazo acabou.",
        "Change de voie.",
        "Respire fundo.",
        "Come sempre, ho dormito male.",
        "Come stai oggi?",
        "Come ti chiami?",
        "Send mir das bitte.",
        "Start jetzt!",
        "Stop ved lyset.",
        "Ring mig i morgon.",
        "Ring meg i kveld.",
        "Ta det lugnt.",
        "Be careful nie znam.",
        "Tell mir nix.",
        "Leave moi tranquille.",
        "Find ich gut.",
        "Finde ich schön.",
        "Hang on? nein",
        "Wear ist Deutsch für wer.",
        "Add meg hozzá.",
        "Give mij dat.",
        "Want dat is waar.",
        "Want ik hou van thee.",
        "Must be? no sé.",
        "Man kann nicht alles haben.",
        "Fast alle waren da.",
        "Just nu bor jag i Lund.",
        "Just det, vi bestämde oss.",
        "Kan du hjälpa me?",
        "Ho deciso ieri di venderla.",
        "It is kalt? hát nem.",
        "Sore wa ii desu ne.",
        "Watashi wa sushi ga suki desu.",
        "Hindi ko alam.",
        "Ako ay pagod na.",
        "At pumunta kami sa bayan.",
        "Saya suka teh.",
        "Saya dan we pergi.",
        "Dia is baik.",
        "Mo nifẹ tii.",
        "Ninapenda chai.",
        "Nous love Paris.",
        "Je like cette page.",
        "Me likes? nö",
        "Il like vient de loin.",
        "Je suis allé au week-end.",
        "J'ai like ta photo.",
        "Gracias por todo, you know.",
        "Ben geldim.",
        "Her gün çay içerim.",
        "Her şey yolunda.",
        "Her yıl tatile gideriz.",
        "On yaşındayım.",
        "On gün önce geldim.",
        "Bin her zaman.",
        "Has olan budur.",
        "Her er min bil.",
        "Her bor jeg.",
        "Han had ikke tid.",
        "For et år siden var jeg i Oslo.",
        "For a semana toda.",
        "As meninas gostam de chá.",
        "As always, não.",
        "In diesem Jahr war ich krank.",
        "In april gaan we op reis.",
        "In maart was het koud.",
        "In 2019 zijn we verhuisd.",
        "In 2010 was hij student.",
        "En we had een feest.",
        "Then was er licht.",
        "Ich habe gestern einen Kuchen gebacken und will ihn essen.",
        "Was ist das?",
        "Me gusta mucho el café por la mañana.",
        "J'ai décidé de partir demain.",
        "Io amo i gatti e i cani.",
        "Wij gaan morgen naar de winkel.",
        "Jag älskar kaffe.",
        "Eu não gosto de chá.",
        "Мы решили переехать.",
        "我们决定搬家。",
        "お茶が好きです。",
        "ฉันชอบชา",
        "हमने जाने का फैसला किया।",
        "🍎🍌",
    ],
)
def test_a_language_that_the_rules_do_not_know_is_a_fact_on_demand(text: str) -> None:
    found = classify(text)
    assert (found.memory_type, found.layer_kind) == ("fact", "on_demand")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I don't like it", "I don’t like it"),
        ("I DECIDED TO MOVE", "i decided to move"),
        ("I\u00a0decided\tto\nmove", "I decided to move"),
        ("I decided to move", "*I* **decided** to `move`"),
        ("(I decided to move)", "“I decided to move”"),
    ],
)
def test_spelling_does_not_matter(one: str, other: str) -> None:
    assert classify(one) == classify(other)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        "i ",
        "so ",
        "I really ",
        "not ",
        "if you ",
        "a, ",
        ".",
        "'",
        "very ",
        "é",
        "`",
        "://",
        "a://",
        "=",
        "a=",
        "'s ",
        "i decided ",
        'a("',
        "a('b",
        "the user ",
        "decision, ",
    ],
)
def test_long_lines_are_fast(unit: str) -> None:
    line = unit * (100_000 // len(unit))
    classify(line)
    start = time.process_time()
    classify(line)
    assert time.process_time() - start < 0.05


GOOD: dict[str, Any] = {
    "version": 1,
    "not_endings": "need",
    "others": "",
    "contractions": {"i'm": "i am"},
    "classes": {"who": "i we", "all": "<who> you"},
    "macros": {"soon": "(now | soon)"},
    "rules": [
        {
            "id": "decision.going",
            "memory_type": "decision",
            "layer_kind": "on_demand",
            "pattern": "<all> am? <-ing> .{0,1} {soon} (?! <?>)",
            "why": "…",
            "match": ["…"],
            "no_match": [],
        },
        {
            "id": "x",
            "memory_type": "fact",
            "layer_kind": "on_demand",
            "pattern": "",
            "why": "…",
            "match": [],
            "no_match": [],
        },
    ],
}


def changed(**changes: Any) -> dict[str, Any]:
    """GOOD with another first rule."""
    copy: dict[str, Any] = json.loads(json.dumps(GOOD))
    copy["rules"][0] |= changes
    return copy


def test_a_pattern_is_read_as_words() -> None:
    rules = load(GOOD)
    pattern = re.compile(rules.rules[0].regex)
    assert pattern.search(rules.spell("I'm leaving now"))
    assert pattern.search(rules.spell("You walking home soon!"))
    assert not pattern.search(rules.spell("I'm leaving now?"))
    assert not pattern.search(rules.spell("I need now"))
    assert not pattern.search(rules.spell("They leaving now"))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (changed(pattern="<nobody>"), "no class"),
        (changed(pattern="{never}"), "cannot read"),
        (changed(pattern="A"), "cannot read"),
        (changed(pattern="(?<= i)"), "cannot read"),
        (changed(memory_type="opinion"), "unknown"),
        (changed(layer_kind="later"), "unknown"),
        (changed(id="x"), "share an id"),
        (GOOD | {"rules": GOOD["rules"][:1]}, "last rule"),
    ],
)
def test_a_bad_rule_file_is_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(rules)


DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
LABELLED = DATA / "classify_dev.jsonl"


@pytest.mark.skipif(not LABELLED.exists(), reason="measuring data is not here: ../shared/data/classify_dev.jsonl")
def test_labelled_sentences() -> None:
    rows = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    score = Score(rows)
    assert score.accuracy >= 0.88
    assert score.macro_f1 >= 0.85
    assert min(score.f1.values()) >= 0.75
    assert score.layer >= 0.92
    looked_at = Score([row for row in rows if is_looked_at(row["text"])])
    unread = Score([row for row in rows if not is_looked_at(row["text"])])
    assert unread.accuracy >= looked_at.accuracy - 0.08
    assert unread.layer >= looked_at.layer - 0.08


def test_the_score() -> None:
    rows = [
        {"text": "I love tea.", "memory_type": "preference", "layer_kind": "on_demand", "layer_alt": "preloaded"},
        {"text": "We decided to move.", "memory_type": "event", "alt": ["decision"], "layer_kind": "preloaded"},
        {"text": "PostgreSQL uses MVCC.", "memory_type": "event", "layer_kind": "on_demand"},
        {"text": "The sea is blue.", "memory_type": "fact", "layer_kind": "on_demand"},
    ]
    score = Score(rows)
    assert (score.accuracy, score.layer) == (3 / 4, 3 / 4)
    assert score.f1 == {
        "fact": 2 / 3, "event": 0, "discovery": 1, "preference": 1, "advice": 1, "decision": 1,
    }  # fmt: skip
    assert [row["text"] for row in rows if is_wrong(row)] == ["We decided to move.", "PostgreSQL uses MVCC."]


def test_a_rule_set_that_was_released_has_its_version_for_itself() -> None:
    """Statements keep the version: reclassify() looks at those of others. So whoever changes a rule raises it.

    Here stands what the newest version compiles to: a new line for a new version, none for what was deployed anywhere.
    """
    rules = rule_set()
    compiled = json.dumps([rules.lexicon, [(r.id, r.memory_type, r.layer_kind, r.regex) for r in rules.rules]])
    assert (rules.version, hashlib.sha256(compiled.encode()).hexdigest()[:16]) == (3, "70dab65957147ac3")


def test_ids_begin_with_the_type() -> None:
    for rule in RULES:
        assert rule.id.split(".")[0] == rule.memory_type


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("i am", ["i", "am"]),  # one of them
        ("i (am | was) here", ["here", "i"]),
        ("(a | b)* c", ["c"]),
        ("a? .{0,2} b{1,2}", ["b"]),
        ("a | .", None),
        ("(?! a) b", ["b"]),
        ("(a c | b d?) | c", ["a", "b", "c"]),
        ("^ $", None),
        ("<!who> (c | .)", None),
    ],
)
def test_what_a_pattern_needs(pattern: str, needed: list[str] | None) -> None:
    data = changed(pattern=pattern) | {"classes": {"who": "i we"}, "macros": {}}
    rules = load(data)
    found = {word for word, symbol in rules.lexicon.items() if symbol and symbol in rules.rules[0].keys}
    if needed is None:
        assert found == set()
    else:
        assert found
        assert found <= set(needed)


@given(st.lists(st.sampled_from(sorted(word for word in rule_set().lexicon if word)), max_size=14).map(" ".join))
@settings(max_examples=500)
def test_no_rule_is_ruled_out_that_would_match(text: str) -> None:
    symbols = rule_set().spell(text)
    first = next(rule for rule in RULES if re.search(rule.regex, symbols))
    assert classify(text).rule == first.id
