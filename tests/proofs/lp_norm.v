(* lp_norm.v - LP: batch norm that divides by another size t than the standard deviation.

   Most of it needs of the size only that it has a gradient, and that it is homogeneous. LP.8 says
   where the three sizes of the header have one: where nothing is 0 (L1, L2), where the largest
   value is not tied (L∞). *)

Require Import base batch_norm merge.

Definition homogeneous (t : (nat -> R) -> R) :=
  forall c x, 0 < c -> t (fun i => c * x i) = c * t x.

(* LP.2: t = ⟨|u|⟩ (L1), √⟨u²⟩ (L2), maxᵢ |uᵢ| (L∞) *)
Definition size1 (M : nat) (u : nat -> R) : R := mean M (fun i => Rabs (u i)).
Definition size2 (M : nat) (u : nat -> R) : R := sqrt (mean M (fun i => u i ^ 2)).
Fixpoint largest (M : nat) (u : nat -> R) : R :=
  match M with O => 0 | S k => Rmax (largest k u) (Rabs (u k)) end.
(* LP.1: cᵢ = xᵢ − μ *)
Definition centred (M : nat) (x : nat -> R) (i : nat) : R := x i - mean M x.

Lemma d_abs f (t a : R) : is_derive f t a -> f t <> 0 ->
  is_derive (fun s => Rabs (f s)) t (sign (f t) * a).
Proof. intros D H. eapply d_eq; [apply is_derive_Rabs; [exact D | exact H] | ring]. Qed.

Section Sizes.
Variables (M : nat) (u : nat -> R).
Hypothesis M_pos : (0 < M)%nat.
Let M_ne0 := count_ne0 M M_pos.

Lemma d_Sum_lt n (f : R -> nat -> R) (t : R) d :
  (forall i, (i < n)%nat -> is_derive (fun s => f s i) t (d i)) ->
  is_derive (fun s => ∑ i < n, f s i) t (∑ i < n, d i).
Proof. induction n; simpl; intros H; [apply d_const | apply d_plus; auto]. Qed.

(* LP.8: ∂t/∂uᵢ = sign(uᵢ)/M (L1), where no value is 0 *)
Theorem LP_8_L1 : (forall i, (i < M)%nat -> u i <> 0) ->
  gradient M (size1 M) u (fun i => sign (u i) / M).
Proof.
  intros H p s d [E D]. unfold size1. eapply d_eq.
  - apply d_divc, (d_Sum_lt M (fun s i => Rabs (p s i))). intros i I.
    apply d_abs; [apply D |]. rewrite E. apply H, I.
  - cbv beta. rewrite E. unfold Rdiv. rewrite Rmult_comm, <- Sum_scal. apply Sum_ext; termwise.
Qed.

(* LP.8: ∂t/∂uᵢ = qᵢ: sign(uᵢ)/M (L1), uᵢ/(M·t) (L2), sign(uᵢ) if |uᵢ| = t, else 0 (L∞); here L2,
   where t > 0 *)
Theorem LP_8 : let t := size2 M u in 0 < t -> gradient M (size2 M) u (fun i => u i / (M * t)).
Proof.
  intros t T p s d [E D]. unfold size2.
  assert (P : 0 < mean M (fun i => u i ^ 2)).
  { destruct (Rle_lt_dec (mean M (fun i => u i ^ 2)) 0) as [N | N]; [| exact N].
    unfold t, size2 in T. rewrite sqrt_neg_0 in T by exact N. lra. }
  eapply d_eq; [apply d_sqrt; [unfold mean; rate | rewrite E; exact P] |].
  cbv beta. rewrite E. fold (mean M (fun i => u i ^ 2)) (size2 M u). fold t.
  rewrite (Sum_lin1 M 2 (d · u)) by termwise.
  rewrite (Sum_lin1 M (1 / (M * t)) (d · u) (fun i => d i * (u i / (M * t))))
    by (intros; cbv beta; field; lra).
  field. lra.
Qed.

(* LP.8: sign(uᵢ) if |uᵢ| = t, else 0 (L∞), where one value is larger than all others *)
Lemma largest_at n k w : (k < n)%nat ->
  (forall i, (i < n)%nat -> i <> k -> Rabs (w i) <= Rabs (w k)) -> largest n w = Rabs (w k).
Proof.
  induction n; intros K H; [lia |]. simpl.
  assert (B : forall m, (m <= n)%nat -> (forall i, (i < m)%nat -> Rabs (w i) <= Rabs (w k)) ->
    largest m w <= Rabs (w k)).
  { induction m; simpl; intros; [apply Rabs_pos |]. apply Rmax_lub; auto with arith. }
  destruct (Nat.eq_dec n k) as [E | E].
  - subst. apply Rmax_right, B; [lia |]. intros i I. apply H; lia.
  - rewrite IHn by (try lia; intros; apply H; lia). apply Rmax_left, H; lia.
Qed.

Theorem LP_8_max k : (k < M)%nat -> u k <> 0 ->
  (forall i, (i < M)%nat -> i <> k -> Rabs (u i) < Rabs (u k)) ->
  gradient M (largest M) u (fun i => sign (u k) * δ k i).
Proof.
  intros K Z H p s d [E D].
  assert (C : forall i, continuous (fun r => Rabs (p r i)) s).
  { intros i. apply (continuous_comp (fun r => p r i) Rabs).
    - apply (ex_derive_continuous (fun r => p r i)). exists (d i). apply D.
    - apply continuous_Rabs. }
  assert (N : forall n, (n <= M)%nat -> locally s (fun r =>
    forall i, (i < n)%nat -> i <> k -> Rabs (p r i) <= Rabs (p r k))).
  { induction n; intros L; [apply filter_forall; intros; lia |].
    destruct (Nat.eq_dec n k) as [e | e].
    - assert (L' : (n <= M)%nat) by lia. generalize (IHn L'). apply filter_imp.
      intros r A i I Q. apply A; lia.
    - assert (G : locally s (fun r => Rabs (p r n) - Rabs (p r k) < 0)).
      { pose proof (continuous_minus (V := R_NormedModule) _ _ s (C n) (C k)) as Cm.
        apply (Cm (fun y => y < 0)).
        assert (I : (n < M)%nat) by lia. assert (P : 0 < Rabs (u k) - Rabs (u n))
          by (pose proof (H n I e); lra).
        exists (mkposreal _ P). intros y B. unfold ball in B; simpl in B.
        unfold AbsRing_ball, abs, minus, plus, opp in B; simpl in B. rewrite !E in B.
        apply Rabs_def2 in B. lra. }
      assert (L' : (n <= M)%nat) by lia. generalize (filter_and _ _ (IHn L') G). apply filter_imp.
      intros r [A B] i J Q.
      destruct (Nat.eq_dec i n) as [x | x]; [subst; lra | apply A; lia]. }
  apply (is_derive_ext_loc (fun r => Rabs (p r k))).
  - generalize (N M (le_n M)). apply filter_imp. intros r A. symmetry. apply largest_at; assumption.
  - eapply d_eq; [apply d_abs; [apply D | rewrite E; exact Z] |].
    cbv beta. rewrite E, (Sum_lin1 M (sign (u k)) (δ k · d)
      (fun i => d i * (sign (u k) * δ k i))), Sum_delta by (exact K || termwise). reflexivity.
Qed.

(* LP.16: ⟨|c|⟩ ≤ √⟨c²⟩ ≤ maxᵢ |cᵢ| *)
Lemma largest_is n w i : (i < n)%nat -> Rabs (w i) <= largest n w.
Proof.
  induction n; intros I; [lia |]. simpl. destruct (Nat.eq_dec i n) as [E | E].
  - subst. apply Rmax_r.
  - eapply Rle_trans; [apply IHn; lia | apply Rmax_l].
Qed.
Theorem LP_16 : size1 M u <= size2 M u /\ size2 M u <= largest M u.
Proof.
  assert (P : 0 <= size1 M u) by (apply mean_nonneg; intros; apply Rabs_pos).
  split.
  - rewrite <- (sqrt_pow2 (size1 M u)) by exact P. apply sqrt_le_1_alt.
    pose proof (SUM_1 M (fun i => Rabs (u i)) M_pos) as E.
    pose proof (var_nonneg M (fun i => Rabs (u i))) as V. unfold var in V.
    rewrite <- (mean_is M (fun i => (Rabs (u i) - mean M (fun j => Rabs (u j))) ^ 2)), E in V.
    rewrite (mean_ext M _ (fun i => u i ^ 2)) in V by (intros; apply pow2_abs).
    unfold size1. lra.
  - assert (B : 0 <= largest M u).
    { eapply Rle_trans; [apply (Rabs_pos (u 0%nat)) | apply largest_is, M_pos]. }
    rewrite <- (sqrt_pow2 (largest M u)) by exact B. apply sqrt_le_1_alt.
    rewrite <- (mean_const M (largest M u ^ 2)) by exact M_pos. unfold mean, Rdiv.
    apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, count_pos, M_pos |].
    apply Sum_le; intros i I. rewrite <- (pow2_abs (u i)).
    apply pow_incr. split; [apply Rabs_pos | apply largest_is, I].
Qed.
End Sizes.

Section Lp.
Variables (M : nat) (ε γ β : R) (t : (nat -> R) -> R) (x k : nat -> R).
Hypothesis M_pos : (0 < M)%nat.
Let M_ne0 := count_ne0 M M_pos.
Notation "⟨ f ⟩" := (mean M f).
Notation μ := (mean M x).

(* LP.5: √⟨x²⟩ = √(v + μ²), √⟨c²⟩ = √v *)
Theorem LP_5 : size2 M x = sqrt (var M x + μ ^ 2) /\ size2 M (centred M x) = sqrt (var M x).
Proof.
  split; unfold size2; f_equal.
  pose proof (SUM_1 M x M_pos) as E. unfold var. rewrite <- mean_is, E. ring.
Qed.

(* LP.9: ∂t/∂xᵢ = kᵢ = qᵢ, or qᵢ − ⟨q⟩ if centred *)
Theorem LP_9 q : gradient M t (centred M x) q ->
  gradient M (fun x => t (centred M x)) x (fun i => q i - ⟨q⟩).
Proof.
  apply (chain M M t (centred M) x (fun d i => d i - ⟨d⟩)).
  - intros p s d P. pose proof (along_mean M x d p s P). destruct P as [E D].
    split; [rewrite E; reflexivity |]. intros i. unfold centred. rate.
  - intros d. transitivity (1 * Sum M (d · q) + (- ⟨d⟩) * Sum M q).
    + apply Sum_lin2; termwise.
    + symmetry. transitivity (1 * Sum M (d · q) + (- ⟨q⟩) * Sum M d).
      * apply Sum_lin2; termwise.
      * unfold mean. field. exact M_ne0.
Qed.

(* From here on t is a size of x with gradient k, centred or not. LP.3: r = 1/(t + ε) *)
Hypothesis dt : gradient M t x k.
Hypothesis positive : 0 < t x + ε.
Notation r := (1 / (t x + ε)).
Definition lp_hat (x : nat -> R) (i : nat) : R := centred M x i * (1 / (t x + ε)).
Notation "x̂" := (lp_hat x).

Lemma along_lp p s d : path p s x d ->
  path (fun a => lp_hat (p a)) s x̂ (fun j => r * (d j - ⟨d⟩ - x̂ j * ∑ i < M, d i * k i)).
Proof.
  intros P. pose proof (along_mean M x d p s P). pose proof (dt p s d P) as Dt.
  destruct P as [E D]. split; [rewrite E; reflexivity |]. intros j. unfold lp_hat at 1, centred.
  assert (Dr : is_derive (fun a => 1 / (t (p a) + ε)) s (- r ^ 2 * ∑ i < M, d i * k i)).
  { eapply d_eq; [apply d_div; [apply d_const | rate | rewrite E; lra] |].
    cbv beta. rewrite E. field. lra. }
  eapply d_eq; [rate |]. cbv beta. rewrite E. unfold lp_hat, centred. field. lra.
Qed.

(* LP.10: ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − kᵢ·x̂ⱼ) *)
Theorem LP_10 i j : (i < M)%nat ->
  partial (fun x => lp_hat x j) x i (r * (δ i j - 1 / M - k i * x̂ j)).
Proof.
  intros H. destruct (along_lp _ 0 (δ i) (path_nudge x i)) as [_ D].
  eapply d_eq; [apply D |]. cbv beta. unfold mean.
  rewrite (Sum_delta M i k), Sum_delta_one by exact H. ring.
Qed.

(* LP.11: dxᵢ = γ·r·(dyᵢ − ⟨dy⟩ − kᵢ·∑ⱼ dyⱼ·x̂ⱼ), for any loss *)
Theorem LP_11 L dy : gradient M L (fun i => γ * x̂ i + β) dy ->
  gradient M (fun x => L (fun i => γ * lp_hat x i + β)) x
    (fun i => γ * r * (dy i - ⟨dy⟩ - k i * ∑ j < M, dy j * x̂ j)).
Proof.
  apply (chain M M L (fun x i => γ * lp_hat x i + β) x
    (fun d j => γ * (r * (d j - ⟨d⟩ - x̂ j * ∑ i < M, d i * k i)))).
  - intros p s d P. destruct (along_lp p s d P) as [E D]. split.
    + apply functional_extensionality; intros i. rewrite E. reflexivity.
    + intros i. eapply d_eq; [rate | ring].
  - intros d. transitivity (γ * r * Sum M (d · dy) + (- γ * r * ⟨d⟩) * Sum M dy
                            + (- γ * r * Sum M (d · k)) * Sum M (dy · x̂)).
    + apply Sum_lin3; termwise.
    + symmetry. transitivity (γ * r * Sum M (d · dy) + (- γ * r * ⟨dy⟩) * Sum M d
                              + (- γ * r * Sum M (dy · x̂)) * Sum M (d · k)).
      * apply Sum_lin3; termwise.
      * unfold mean. field. split; exact M_ne0 || lra.
Qed.

(* LP.12: dxᵢ = γ·r·dyᵢ (frozen), with m and a, which do not depend on x, for μ and t *)
Theorem LP_12 L dy m a : let s := 1 / (a + ε) in
  gradient M L (fun i => γ * ((x i - m) * s) + β) dy ->
  gradient M (fun x => L (fun i => γ * ((x i - m) * s) + β)) x (fun i => γ * s * dy i).
Proof.
  intros s. apply (chain M M L (fun x i => γ * ((x i - m) * s) + β) x (fun d i => γ * s * d i)).
  - intros p q d [E D]. split; [rewrite E; reflexivity |]. intros i. eapply d_eq; [rate | ring].
  - intros d. apply Sum_ext; termwise.
Qed.

(* LP.13: ∑ᵢ kᵢ·xᵢ = t, Euler's theorem *)
Theorem LP_13 : homogeneous t -> ∑ i < M, k i * x i = t x.
Proof.
  intros H. assert (P : path (fun c i => c * x i) 1 x x).
  { split; [apply functional_extensionality; intros; ring |]. intros i.
    eapply d_eq; [rate | ring]. }
  assert (A : is_derive (fun c => t (fun i => c * x i)) 1 (t x)).
  { apply (is_derive_ext_loc (fun c => c * t x)).
    - exists (mkposreal 1 Rlt_0_1). intros c B. symmetry. apply H.
      change (Rabs (c - 1) < 1) in B. apply Rabs_def2 in B. lra.
    - eapply d_eq; [rate | ring]. }
  rewrite <- (is_derive_unique _ _ _ A). symmetry. apply is_derive_unique.
  eapply d_eq; [exact (dt _ _ _ P) | apply Sum_ext; termwise].
Qed.

Definition lp_dx (dy : nat -> R) (i : nat) : R :=
  γ * r * (dy i - ⟨dy⟩ - k i * ∑ j < M, dy j * x̂ j).

(* LP.14: ∑ᵢ dxᵢ·xᵢ = γ·ε·r·∑ᵢ dyᵢ·x̂ᵢ *)
Theorem LP_14 dy : homogeneous t ->
  ∑ i < M, lp_dx dy i * x i = γ * ε * r * ∑ i < M, dy i * x̂ i.
Proof.
  intros H. pose proof (LP_13 H) as T.
  assert (B : Sum M (dy · x̂) = r * (Sum M (dy · x) - μ * Sum M dy)).
  { transitivity (r * Sum M (dy · x) + (- r * μ) * Sum M dy); [| ring].
    apply Sum_lin2. intros; unfold lp_hat, centred; ring. }
  transitivity (γ * r * Sum M (dy · x) + (- γ * r * ⟨dy⟩) * Sum M x
                + (- γ * r * Sum M (dy · x̂)) * Sum M (k · x)).
  - apply Sum_lin3. unfold lp_dx. termwise.
  - rewrite T, B. unfold mean. field. split; exact M_ne0 || lra.
Qed.

(* LP.15: ∑ᵢ dxᵢ = −γ·r·∑ⱼ dyⱼ·x̂ⱼ·∑ᵢ kᵢ, 0 if centred: then k = q − ⟨q⟩ *)
Theorem LP_15 dy : ∑ i < M, lp_dx dy i = - γ * r * (∑ j < M, dy j * x̂ j) * ∑ i < M, k i.
Proof.
  transitivity (γ * r * Sum M dy + (- γ * r * ⟨dy⟩) * ∑ i < M, 1
                + (- γ * r * Sum M (dy · x̂)) * ∑ i < M, k i).
  - apply Sum_lin3. unfold lp_dx. termwise.
  - rewrite Sum_const, (Sum_mean M dy) by exact M_pos. ring.
Qed.
Theorem LP_15_centred dy q : (forall i, k i = q i - ⟨q⟩) -> ∑ i < M, lp_dx dy i = 0.
Proof.
  intros H. rewrite LP_15, (Sum_ext M (fun i => k i) _ H), Sum_dev by exact M_pos. ring.
Qed.
End Lp.

(* The three sizes are homogeneous. *)
Lemma size1_homogeneous M : homogeneous (size1 M).
Proof.
  intros c x C. unfold size1. rewrite (mean_lin2 M c 0 (fun i => Rabs (x i)) x).
  - ring.
  - intros i. rewrite Rabs_mult, (Rabs_right c) by lra. ring.
Qed.
Lemma size2_homogeneous M : homogeneous (size2 M).
Proof.
  intros c x C. unfold size2. rewrite (mean_lin2 M (c ^ 2) 0 (fun i => x i ^ 2) x) by termwise.
  rewrite Rmult_0_l, Rplus_0_r, sqrt_mult_alt, sqrt_pow2 by nra. reflexivity.
Qed.
Lemma largest_homogeneous M : homogeneous (largest M).
Proof.
  intros c x C. induction M; simpl; [ring |]. rewrite IHM, Rabs_mult, (Rabs_right c) by lra.
  rewrite RmaxRmult by lra. reflexivity.
Qed.
